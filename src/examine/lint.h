// Asks of each problem whether kernels can be judged by it (python/kernelbench_worker/lint.py says
// how it is told): problems run at a small size, on the CPU, several at a time, each in a process
// of its own in a sandbox, since a problem file may be a stranger's. Or asks only whether it runs,
// which a GPU can be asked as well (once.py).
//
// A report is no proof against a file that lies: the same process computes and reports.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "examine/station.h"
#include "problem/problem.h"
#include "worker/spec.h"

namespace kb::examine {

/// A reason not to judge kernels by a problem.
struct Finding {
  /// What was looked for: shape, repeat, finite, zero, constant, seed, float64, input, weight,
  /// inert (the worker's), load, memory, timeout, crash, device (it could not be looked at),
  /// duplicate.
  std::string rule;
  std::string text;  ///< one sentence, fit for a terminal
};

struct Report {
  std::string label;  ///< the problem's: "level1/19", or a path
  std::string name;
  std::string hash;
  std::string size;     ///< at which it was looked at; empty when it could not be
  std::string altered;  ///< the file's own word on how it differs from the public problem
  std::vector<Finding> findings;
  std::vector<std::string> notes;  ///< what could not be looked at, and is no fault
  /// Of the weights with an effect the one with the least: a change of its own size moves an
  /// output by this much, relatively.
  std::optional<std::pair<std::string, double>> weakest;
  std::optional<worker::ProblemSpec> spec;
  std::optional<std::uint64_t> peak_bytes;  ///< of the device's memory, in one run
  double seconds = 0;
};

/// Called as each report is made, one call at a time.
using Watcher = std::function<void(const Report&)>;

/// One report a problem, in their order; `jobs` problems at a time. Error: no worker can be
/// started.
std::expected<std::vector<Report>, std::string> lint(const Environment& environment,
                                                     std::span<const problem::Problem> problems,
                                                     const Terms& terms, unsigned jobs,
                                                     const Watcher& watcher = {});

/// The same, where each problem's reference is only called once, on terms.device. What does not fit
/// there beside the other jobs is asked again alone.
std::expected<std::vector<Report>, std::string> run_once(const Environment& environment,
                                                         std::span<const problem::Problem> problems,
                                                         const Terms& terms, unsigned jobs,
                                                         const Watcher& watcher = {});

/// Adds a finding to each report whose problem is the same program as another one of `all`.
void find_duplicates(std::span<Report> reports, std::span<const problem::Problem> all);

/// Reads a worker's reply into `report`: strictly, since a stranger's code may have written it.
/// Error: one sentence.
std::expected<void, std::string> parse_reply(const nlohmann::json& reply, Report& report);
/// The same, of the reply to `once`.
std::expected<void, std::string> parse_run(const nlohmann::json& reply, Report& report);

}  // namespace kb::examine
