// Stored times of the references, in KernelBench's format: what a speedup is taken against when a
// run's own reference times are not there or not wanted.
//
//   {"level1": {"19_ReLU.py": {"mean", "std", "min", "max", "num_trials", "hardware"}}}   (ms)
// Those that we write have a "median" beside, which is read in place of the mean.
#pragma once

#include <expected>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "score/evaluation.h"

namespace kb::score {

class Baseline {
 public:
  /// An entry without a positive finite median or mean is passed over: its problem has no baseline.
  /// Error: one sentence (foreign JSON, two entries of one number that differ, no time at all).
  static std::expected<Baseline, std::string> parse(std::string_view text);
  /// Microseconds of one call; null: it has no such problem.
  std::optional<double> time_us(const std::string& problem) const;

 private:
  std::map<std::string, double> times_us_;  // by "level1/19"
};

/// Takes each speedup against the baseline: its time over the evaluation's own, without an interval
/// and with the flag `stored_baseline`, since the two were not timed together; none where either is
/// missing. Returns the problems with a time that the baseline does not have.
std::vector<std::string> use_baseline(const Baseline& baseline,
                                      std::vector<Evaluation>& evaluations);

enum class Side { reference, candidate };
/// The times of one side of a run as KernelBench's baseline. `names`: problem → file name, such as
/// "19_ReLU.py"; a problem without one is "19.py". Every timed turn of that side in every sample is
/// a trial; a candidate's counts when it is correct. Problems without an id or a time are left out.
nlohmann::ordered_json baseline_json(const std::vector<Evaluation>& evaluations,
                                     const std::map<std::string, std::string>& names,
                                     Side side = Side::reference);

}  // namespace kb::score
