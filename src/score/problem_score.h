// What one problem contributes: its samples, made one by a rule.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "score/bootstrap.h"
#include "score/evaluation.h"

namespace kb::score {

/// How several samples of one problem count. `average`: each, with an equal share: what a sample
/// drawn at random is worth. `first`: sample 0 (KernelBench's rule; where it is missing or ended as
/// infrastructure_error, the lowest that counts). `best`: the best of all, as if somebody who knows
/// the verdicts had chosen.
enum class SampleRule { average, first, best };
std::string_view name_of(SampleRule rule);
std::optional<SampleRule> parse_sample_rule(std::string_view word);

inline const std::vector<double> kDefaultThresholds = {0.0, 0.5, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0};

struct Options {
  std::vector<double> thresholds = kDefaultThresholds;  ///< p, ascending
  SampleRule samples = SampleRule::average;
  std::vector<int>
      ks;  ///< of pass@k; empty: 1 and up to the smallest number of samples, at most 10
  /// Problems that count in the denominators although nobody attempted them.
  std::set<std::string, ProblemLess> set;
  std::string over = "attempted";  ///< the denominator's name, for the output
};

struct ProblemScore {
  std::string problem;
  int level = 0;
  int samples = 0;          ///< that count; 0: nobody attempted it
  int correct_samples = 0;  ///< of those
  bool solved = false;      ///< one of the counting samples is correct
  bool faster = false;      ///< one of them has a speedup over 1
  bool untimed = false;     ///< solved, and no correct counting sample has a speedup
  // By the rule: the mean over the counting samples, or the one that counts. 0 … 1.
  double correct = 0;
  std::vector<double> fast, verified;  ///< one a threshold
  /// Geometric mean over the counting samples that are correct (and over 1); with `best` the
  /// largest.
  std::optional<double> speedup, speedup_if_faster;
  std::optional<Interval> speedup_ci95;  ///< where `speedup` comes from one sample that has one
};

/// One a problem, in order; those of `options.set` without samples included. Evaluations that do
/// not count are passed over.
std::vector<ProblemScore> score_problems(const std::vector<const Evaluation*>& evaluations,
                                         const Options& options);

/// The chance that of k samples out of n, of which c are correct, at least one is:
/// 1 − C(n−c, k) / C(n, k). 1 ≤ k ≤ n, 0 ≤ c ≤ n.
double pass_at(int n, int c, int k);

}  // namespace kb::score
