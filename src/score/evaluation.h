// The part of one evaluation's JSON that scoring reads.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace kb::score {

struct Evaluation {
  std::string problem;
  int level = 0;  ///< 0 when the problem has no id
  int sample = 0;
  std::string backend;
  std::string verdict;
  bool compiled = false;
  bool correct = false;  ///< the member `correct`, and the verdict is `correct`
  bool counts =
      true;  ///< false for infrastructure_error: left out of every denominator, and reported
  bool public_compiled = false, public_correct = false;  ///< by KernelBench's rule
  std::vector<std::string> flags;
  std::optional<double> time_us, reference_time_us;  ///< of one call; positive and finite
  /// Of one call of the reference and of the candidate, one a timed turn; empty where turns were
  /// not recorded.
  std::vector<double> reference_times_us, times_us;
  std::optional<double> speedup, ci_low, ci_high;
  std::optional<double> at_least;  ///< the speedup's, as the judge says; none: ci_low
  /// What has to be equal for two times to be compared: "cpu, fp32, small". Empty: unknown.
  std::string conditions;

  /// True when the kernel is correct and its speedup is a positive finite number over `p`.
  bool faster_than(double p) const;
  /// True when, beyond that, no flag disqualifies it and its speedup is at least over `p`: by its
  /// interval, and by what the judge relies on.
  bool verified_faster_than(double p) const;
  bool has_interval() const;  ///< both bounds are finite, and in order
};

/// Orders problems as people do: by level, by the number in it, by name; without an id last.
struct ProblemLess {
  bool operator()(const std::string& a, const std::string& b) const;
};

/// The level of "level1/19"; 0 for anything else.
int level_of(const std::string& problem);

/// Flags that keep a correct verdict out of the verified score: every one, also one that is not
/// known here, but those that only explain a time (`launch_bound`, `library_call`) and
/// `noisy`, which says of the interval what its lower end, which has to lie above p, says already.
bool disqualifies(const std::string& flag);

/// Reads the object that `eval --json` prints; `sample`, which only a run has, is 0 when missing. A
/// null speedup or interval is none. Error: one sentence that names the missing or ill-typed
/// member. Never throws on bad JSON.
std::expected<Evaluation, std::string> parse_evaluation(const std::string& result_json);

/// The same evaluation under KernelBench's rule: `correct` and `compiled` are what that says, and a
/// verdict that contradicts it gives way.
Evaluation by_public_rule(Evaluation evaluation);

}  // namespace kb::score
