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
  bool correct = false;  ///< the member `correct`, and the verdict is `correct`
  bool counts =
      true;  ///< false for infrastructure_error: left out of every denominator, and reported
  std::vector<std::string> flags;
  std::optional<double> speedup, ci_low, ci_high;

  /// True when the kernel is correct and its speedup is a positive finite number over `p`.
  bool faster_than(double p) const;
};

/// Reads the object that `eval --json` prints; `sample`, which only a run has, is 0 when missing. A
/// null speedup or interval is none. Error: one sentence that names the missing or ill-typed
/// member. Never throws on bad JSON.
std::expected<Evaluation, std::string> parse_evaluation(const std::string& result_json);

}  // namespace kb::score
