// The outcome of one evaluation, and its JSON (the object that `eval --json` prints).
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "judge/options.h"
#include "judge/physics.h"
#include "judge/verdict.h"
#include "measure/speedup.h"
#include "measure/statistics.h"

namespace kb::judge {

struct Tolerances {
  double atol = 0, rtol = 0, norm_rtol = 0;
  double widened = 1;  ///< factor over the public rule; 1 = as it stands
};

/// One correctness trial, kept so that a failure can be understood and repeated.
struct Trial {
  std::string kind;  ///< "random" or the name of a stress transform
  std::uint64_t seed = 0;
  bool counted =
      true;  ///< false: the reference itself is not finite there or disagrees with the truth
  bool passed = false;
  double max_abs_error = 0;
};

struct Result {
  std::string problem, problem_hash, candidate, candidate_hash, backend;
  Verdict verdict = Verdict::infrastructure_error;
  std::string message;  ///< one or more lines for people; untrusted text inside
  bool compiled = false;
  std::optional<bool> public_correct;  ///< KernelBench's rule on the same trials; none: not reached
  std::vector<std::string> flags;

  std::optional<double> time_us, reference_time_us, solo_time_us, speedup;
  std::optional<measure::Interval> speedup_ci95;
  std::optional<double> speedup_at_least;  ///< what verified scores count (measure/speedup.h)
  int pairs = 0;
  int calls_per_turn = 0;
  std::vector<measure::Pair> turns;  ///< every timed pair, in the order taken; nothing is dropped
  double reference_overhead_us = 0, candidate_overhead_us = 0;

  std::vector<Trial> trials;
  Tolerances tolerance;
  std::optional<double> max_abs_error, max_rel_error;
  std::optional<double> norm_error_vs_truth, reference_norm_error_vs_truth;
  std::optional<double> speed_of_light_us;
  std::optional<Work> work;               ///< where the speed of light follows from
  std::uint64_t seed = 0;                 ///< of the first correctness trial
  std::vector<nlohmann::json> telemetry;  ///< of the device: clocks, power … through the timing
  nlohmann::json device;                  ///< Device::describe()
  std::map<std::string, double> phases_ms;
  std::string freezer;  ///< how workers are stopped
  bool cached_build = false;

  bool correct() const { return verdict == Verdict::correct; }
};

nlohmann::json to_json(const Result& result, const Options& options);

}  // namespace kb::judge
