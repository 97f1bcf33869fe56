// fast_p and what stands beside it, from evaluation results.
//
// fast_p(p) = (number of problems whose kernel is correct and has speedup > p) / (number of all
// problems); with several samples a problem, sample 0 counts (KernelBench's rule; where sample 0 is
// missing or ended as infrastructure_error, the lowest that counts). All problems are those judged
// in the run. Verified fast_p counts only a `correct` verdict without a disqualifying flag whose
// speedup_ci95 lies wholly above p. Intervals: bootstrap over problems, with a fixed seed.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "score/evaluation.h"

namespace kb::score {

struct Interval {
  double low = 0, high = 0;
};
struct FastP {
  double p = 0;
  double value = 0;
  Interval ci95;  ///< of value
  double verified = 0;
};
struct Summary {
  std::string name;                     ///< "all", "level1", …
  int problems = 0;                     ///< with at least one sample that counts
  int samples = 0;                      ///< that count
  int correct = 0;                      ///< problems whose counting sample is correct
  int faster = 0;                       ///< of those, with a speedup over 1
  int infrastructure_errors = 0;        ///< samples
  std::map<std::string, int> verdicts;  ///< of all samples
  std::vector<FastP> fast_p;            ///< p in 0, 0.5, 0.8, 1, 1.5, 2, 3, 5
  std::optional<double> geomean_correct,
      geomean_correct_and_faster;   ///< over problems; null when there are none
  std::map<int, double> pass_at_k;  ///< unbiased estimator, k = 1 and every k up to the smallest
                                    ///< number of samples (at most 10)
};
/// "all" first, then one a level. A problem without an id counts in "all" only.
std::vector<Summary> summarize(const std::vector<Evaluation>& evaluations);
nlohmann::json to_json(const std::vector<Summary>& summaries);
/// A table for people: plain text, no control characters whatever the evaluations hold.
std::string to_text(const std::vector<Summary>& summaries,
                    const std::vector<Evaluation>& evaluations);

/// Flags that keep a correct verdict out of the verified score: every one, also one that is not
/// known here, but those that only explain a time (`launch_bound`, `library_call`) and
/// `noisy`, which says of the interval what its lower end, which has to lie above p, says already.
bool disqualifies(const std::string& flag);

}  // namespace kb::score
