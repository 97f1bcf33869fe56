// A worker that runs problems and outlives them: on the CPU python/kernelbench_worker/apart.py
// forks a process for each; on a GPU all run in its own, until one takes that down.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "device/device.h"
#include "problem/problem.h"
#include "sandbox/sandbox.h"
#include "worker/python_environment.h"
#include "worker/torch_pool.h"

namespace kb::examine {

/// What a worker process needs.
struct Environment {
  sandbox::Launcher& launcher;
  worker::PythonEnvironment python;
  std::filesystem::path package_folder;  ///< holds kernelbench_worker/
};

/// How a problem is to be run.
struct Terms {
  std::string size = "public";  ///< or `auto`: `small` where a file has it; or a name of its SIZES
  nlohmann::json set = nlohmann::json::object();  ///< module constants, as in judge::Options
  std::chrono::milliseconds time_limit{300'000};  ///< of each problem
  std::uint64_t memory_bytes = 4ull << 30;        ///< of the host, of each problem
  std::string device = "cpu";                     ///< as workers are told: cpu or cuda
  WorkerNeeds needs = {};                         ///< of that device
};

/// Used by one thread. Starts its worker at the first request, and again after one that did not
/// answer.
class Station {
 public:
  Station(const Environment& environment, const Terms& terms);
  /// Starts a worker where none is there. Error: none can be started.
  std::expected<void, worker::Fault> prepare();
  /// The reply to `operation` (lint, describe, once) on the problem. FaultKind::infrastructure: no
  /// worker can be started.
  std::expected<nlohmann::json, worker::Fault> ask(const char* operation,
                                                   const problem::Problem& problem);

 private:
  Terms terms_;
  worker::TorchPool pool_;
  std::optional<worker::Worker> worker_;
};

/// A worker's text fit for a terminal: the last line of a traceback, or the sentence; bounded.
std::string last_line(std::string_view text);

}  // namespace kb::examine
