// Two runs, problem by problem. Only problems that both have attempted are compared: a difference
// in what was attempted is no difference in what was reached.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "score/bootstrap.h"
#include "score/problem_score.h"
#include "score/run.h"
#include "score/table.h"

namespace kb::score {

/// How a problem went in the second run, seen from the first.
enum class Outcome {
  faster,      ///< both solve it, the second with the larger speedup
  slower,      ///<
  equal,       ///< both, with one speedup
  untimed,     ///< both, and a speedup is missing
  only_base,   ///< only the first solves it
  only_other,  ///< only the second does
  neither
};
std::string_view name_of(Outcome outcome);

struct Pairing {
  std::string problem;
  Outcome outcome = Outcome::neither;
  bool clear = false;  ///< faster or slower, and the two 95 % intervals do not meet
  ProblemScore base, other;
  std::optional<double> ratio;  ///< speedup of the second / of the first
};

/// A share (of correct samples, say) in two runs, paired by problem.
struct Discordance {
  int base_better = 0, other_better = 0;  ///< problems with the larger share
  int tied_yes = 0, tied_no = 0;          ///< equal, and over 0 or not
  double p_value = 1;                     ///< exact two-sided sign test of the first two (McNemar)
  Estimate difference;                    ///< second − first, mean over problems
};

struct Comparison {
  std::string base, other;
  std::vector<Pairing> problems;  ///< attempted by both, in order
  std::vector<std::string> attempted_by_base_alone, attempted_by_other_alone;
  Discordance correct, fast_1;
  int timed = 0;                  ///< problems with a ratio
  std::optional<Estimate> ratio;  ///< geometric mean of the ratios; over 1: the second is faster
  std::vector<std::string> notes;
};

/// Of `options` only `samples` counts.
Comparison compare(const Run& base, const Run& other, Options options);

/// The chance of `base_better` and `other_better` or something less even, if both were equally
/// likely: min(1, 2 P(X ≤ the smaller)), X binomial(their sum, 1/2).
double sign_test(int base_better, int other_better);

nlohmann::json to_json(const Comparison& comparison);
Report to_report(const Comparison& comparison);
/// One problem a row.
Table to_table(const std::vector<Comparison>& comparisons);

}  // namespace kb::score
