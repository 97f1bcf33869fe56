// Judges what many threads hand in: each device has one evaluator, a thread, and a queue feeds
// them. A problem whose reference is loaded goes first, within bounds; while nothing waits, torch
// workers are started for what may come.
#pragma once

#include <condition_variable>
#include <deque>
#include <expected>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <semaphore>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "judge/evaluator.h"

namespace kb::judge {

class Panel {
 public:
  /// Opens the devices, all of one kind; `options` are as for an Evaluator, but for their device.
  /// `environment` outlives the panel. `compilations`: how many at a time, 1 at least, beside GPUs;
  /// a CPU compiles in its turn. Error: one sentence (a device that cannot be had, GPUs of
  /// different kinds).
  static std::expected<std::unique_ptr<Panel>, std::string> open(
      const Environment& environment, const Options& options,
      const std::vector<std::string>& devices, unsigned compilations);
  /// Everything that was handed in must have come back.
  ~Panel() = default;
  Panel(const Panel&) = delete;
  Panel& operator=(const Panel&) = delete;

  /// Builds and judges, as judge_one_of_many does; returns to_json of the result. Called by many
  /// threads at a time. None: `stop` was requested before its turn came.
  std::optional<nlohmann::json> judge(const problem::Problem& problem,
                                      const problem::Candidate& candidate,
                                      const std::stop_token& stop);

 private:
  using Build = std::expected<build::Result, std::string>;
  struct Request {
    const problem::Problem& problem;
    const problem::Candidate& candidate;
    const std::stop_token& stop;
    std::function<Build()> build;
    std::promise<std::optional<nlohmann::json>> result;
    int overtaken = 0;  // by requests that came later
  };

  Panel(const Environment& environment, const Options& options, std::string architecture,
        unsigned compilations)
      : environment_(environment),
        options_(options),
        architecture_(std::move(architecture)),
        compilers_(compilations) {}
  std::expected<void, std::string> seat(const std::string& device);
  void serve(const std::string& device, std::promise<std::string>& opened,
             const std::stop_token& end);
  Request* next(const std::string& last_problem, const std::stop_token& end);
  bool nothing_waits();
  std::size_t torch_workers_waited_for(const std::string& problem);

  const Environment& environment_;
  Options options_;
  std::string architecture_;  // of the GPUs; empty on the CPU
  std::counting_semaphore<> compilers_;
  std::mutex mutex_;  // of the queue
  std::condition_variable_any asked_;
  std::deque<Request*> queue_;
  std::vector<std::jthread> judges_;  // last: they use all of the above
};

}  // namespace kb::judge
