// Judges candidates on one device, one at a time.
//
//   Evaluator evaluator(environment, options);
//   auto build = evaluator.build(problem, candidate);                 // any thread
//   auto result = evaluator.evaluate(problem, candidate, build);
//
// What an evaluation does, in order: static check; build; reference (loaded, timed alone, compared
// with float64: once a problem); candidate loaded; correctness trials; stress trials; paired turns,
// every one of them checked; statistics; flags.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "build/build.h"
#include "judge/device.h"
#include "judge/options.h"
#include "judge/reference.h"
#include "judge/result.h"
#include "problem/problem.h"
#include "sandbox/sandbox.h"
#include "worker/torch_pool.h"

namespace kb::judge {

/// What evaluations share; outlives every Evaluator.
struct Environment {
  sandbox::Launcher& launcher;
  build::Builder& builder;
  worker::PythonEnvironment python;
  std::filesystem::path installation_root;  ///< holds python/ and include/
  std::filesystem::path native_worker;      ///< the program kernelbench-native-worker
  std::filesystem::path heap_library;       ///< libkernelbench-heap.so
};

/// The user's mistake or the machine's, not the candidate's: one sentence, exit code 2.
struct Refusal {
  std::string message;
};

class Evaluator {
 public:
  /// `device` is the one that options.device names.
  Evaluator(const Environment& environment, const Options& options, std::unique_ptr<Device> device);
  ~Evaluator();

  /// Starts the workers that a problem and a candidate of this backend will need, without waiting;
  /// also some of the torch workers that will be needed after that, as far as that helps.
  void warm_up(problem::Backend backend, std::size_t torch_workers_to_come = 0);
  /// For when nothing is to be judged: starts the torch workers that any next candidate will need,
  /// one for another problem included.
  void stand_by();
  /// Compiles what the candidate needs compiled. Thread-safe.
  std::expected<build::Result, Refusal> build(const problem::Problem& problem,
                                              const problem::Candidate& candidate) const;
  /// `progress` (may be empty) is called with the name of each phase as it begins.
  std::expected<Result, Refusal> evaluate(const problem::Problem& problem,
                                          const problem::Candidate& candidate,
                                          const build::Result& build,
                                          const std::function<void(const char*)>& progress = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Judges one of many candidates, so that nothing ends the work on the others: what goes wrong on
/// our side, exceptions included, is an infrastructure_error. `build` is called while the workers
/// start (warm_up); the rest is as in Evaluator.
Result judge_one_of_many(Evaluator& evaluator, const problem::Problem& problem,
                         const problem::Candidate& candidate,
                         const std::function<std::expected<build::Result, std::string>()>& build,
                         std::size_t torch_workers_to_come = 0,
                         const std::function<void(const char*)>& progress = {});

/// A result for a candidate that never reached a worker.
Result unjudged(const problem::Problem& problem, const problem::Candidate& candidate,
                Verdict verdict, std::string message);

}  // namespace kb::judge
