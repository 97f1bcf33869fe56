// fast_p and what stands beside it, from evaluation results. docs/scoring.md has the formulas.
//
// fast_p(p) = mean over problems of the share of its samples that are correct and have speedup > p
// (Options::samples says which samples). Problems are those judged in the run, with Options::set
// those of the set too, which count as unsolved where nobody attempted them. Verified fast_p counts
// only a `correct` verdict without a disqualifying flag whose speedup_ci95 lies wholly above p, and
// its speedup_at_least, too.
// Intervals: bootstrap over problems, with a fixed seed.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "score/evaluation.h"
#include "score/problem_score.h"
#include "score/table.h"

namespace kb::score {

struct FastP {
  double p = 0;
  double value = 0;
  Interval ci95;  ///< of value
  double verified = 0;
  Interval verified_ci95;
};
struct PassAtK {
  std::optional<Estimate> estimate;  ///< null: no problem has k samples
  int problems = 0;                  ///< that have k samples, or count though nobody attempted them
};
struct Summary {
  enum class Kind { all, level, backend };
  Kind kind = Kind::all;
  std::string name;  ///< "all", "level1", …, or the backend's
  SampleRule sample_rule = SampleRule::average;
  std::string over;                     ///< Options::over
  int problems = 0;                     ///< the denominator
  int attempted = 0;                    ///< of those, with at least one sample that counts
  int samples = 0;                      ///< that count
  int correct = 0;                      ///< problems with a correct counting sample
  int faster = 0;                       ///< of those, with a counting sample of a speedup over 1
  int untimed = 0;                      ///< of those, without any speedup: never fast
  int infrastructure_errors = 0;        ///< samples
  std::map<std::string, int> verdicts;  ///< of all samples
  Estimate correct_rate;                ///< mean over problems of the share of correct samples
  std::vector<FastP> fast_p;
  std::optional<Estimate> geomean_correct,
      geomean_correct_and_faster;  ///< over problems; null when there are none
  std::map<int, PassAtK> pass_at_k;
};

/// "all" first, then one a level, then one a backend. A problem without an id counts in "all" and
/// its backend only. `options.set` counts in "all", by its levels, and in full in each backend.
std::vector<Summary> summarize(const std::vector<Evaluation>& evaluations,
                               const Options& options = {});
/// "all" alone.
Summary summarize_all(const std::vector<Evaluation>& evaluations, const Options& options);

nlohmann::json to_json(const Summary& summary);
nlohmann::json to_json(const std::vector<Summary>& summaries);
/// For people. `notes`: lines to add.
Report to_report(const std::vector<Summary>& summaries, const std::vector<Evaluation>& evaluations,
                 const std::vector<std::string>& notes = {});
/// One number a row: group, metric, at (p or k), value, low, high, problems.
Table to_table(const std::vector<Summary>& summaries);

}  // namespace kb::score
