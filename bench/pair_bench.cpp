// Where the time of a pair goes, step by step, and what slows a reference's turn down: the same
// turn alone, after the steps of a pair, and beside a candidate.
//
//   build/release/bench/pair_bench --device cuda:0 level1/19 KERNEL.cu [--size public] [--rounds
//   30]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "cli/judging.h"
#include "judge/building.h"
#include "judge/contestant.h"
#include "judge/device.h"
#include "judge/reference.h"
#include "measure/statistics.h"
#include "problem/problem.h"
#include "worker/cpus.h"
#include "worker/torch_pool.h"

namespace {

using namespace std::chrono_literals;
using namespace kb;  // NOLINT: a program's only file
using Clock = std::chrono::steady_clock;

class Steps {
 public:
  template <class Step>
  auto time(const std::string& name, Step&& step) {
    const auto start = Clock::now();
    auto result = step();
    add(name, std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    return result;
  }
  void add(const std::string& name, double us) {
    if (!us_.contains(name)) order_.push_back(name);
    us_[name].push_back(us);
  }
  void print() const {
    fmt::print("{:<44} {:>10} {:>10} {:>10}\n", "microseconds", "p10", "p50", "p90");
    for (const auto& name : order_) {
      const auto& us = us_.at(name);
      fmt::print("{:<44} {:>10.1f} {:>10.1f} {:>10.1f}  ({})\n", name, measure::quantile(us, 0.1),
                 measure::quantile(us, 0.5), measure::quantile(us, 0.9), us.size());
    }
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::vector<double>> us_;
};

template <class Expected>
auto must(Expected expected) {
  if (!expected) {
    if constexpr (requires { expected.error().text; })
      fmt::print(stderr, "{}\n", expected.error().text);
    else if constexpr (requires { expected.error().message; })
      fmt::print(stderr, "{}\n", expected.error().message);
    else
      fmt::print(stderr, "{}\n", expected.error());
    std::exit(2);
  }
  if constexpr (!std::is_void_v<typename Expected::value_type>)
    return std::move(*expected);
  else
    return true;
}

}  // namespace

int main(int argc, char** argv) {
  cli::JudgingFlags flags;
  std::string problem_name, candidate_path;
  int rounds = 30;
  CLI::App app{"Where the time of a pair goes"};
  app.add_option("problem", problem_name)->required();
  app.add_option("candidate", candidate_path, "a native kernel")->required();
  app.add_option("--rounds", rounds);
  cli::add_judging_options(app, flags);
  CLI11_PARSE(app, argc, argv);

  Steps steps;
  const auto problem = must(problem::find(problem_name));
  const auto candidate = must(problem::load_candidate(candidate_path));
  const auto options =
      cli::options_from(flags, cli::device_for(candidate.language, cli::devices_of(flags)));
  auto device =
      steps.time("open the device", [&] { return must(judge::open_device(options.device)); });
  cli::Workshop workshop(flags);
  const auto& environment = workshop.environment();
  const auto build =
      must(judge::build_candidate(environment.builder,
                                  {environment.python, environment.installation_root,
                                   device->describe().value("architecture", std::string())},
                                  problem, candidate));
  worker::TorchPool pool(
      workshop.launcher(),
      {environment.python, environment.installation_root / "python", judge::thread_count(options),
       options.memory_bytes, device->worker_needs()});
  auto torch = must(pool.take()), timed = must(pool.take());
  steps.time("torch worker: start to hello", [&] { return must(torch.await_hello(180s)); });
  must(timed.await_hello(180s));
  auto reference = steps.time("reference: load and measure", [&] {
    return must(
        judge::Reference::load(std::move(torch), std::move(timed), problem, options, *device));
  });
  for (const auto& [name, ms] : reference->load_phases_ms()) steps.add("  " + name, 1000 * ms);
  const int calls_per_turn = reference->plan().max_calls;
  const auto slots = static_cast<unsigned>(calls_per_turn);
  const auto draw = [&](const auto& calls) {
    std::vector<std::uint64_t> seeds(calls.size());
    std::ranges::generate(seeds, judge::secret_seed);
    return must(reference->draw(calls, seeds));
  };

  for (int i = 0; i < rounds; ++i) {
    const auto calls = judge::random_calls(calls_per_turn, slots);
    draw(calls);
    must(reference->prepare_turn(reference->draw_cpu()));
    reference->arm_turn(calls);
    steps.add("reference's turn: alone", must(reference->turn()).wall_us);
  }
  for (int i = 0; i < rounds; ++i) {
    const auto calls = judge::random_calls(calls_per_turn, slots);
    draw(calls);
    must(reference->expect(calls));
    must(reference->prepare_turn(reference->draw_cpu()));
    reference->arm_turn(calls);
    steps.add("reference's turn: alone, after expect", must(reference->turn()).wall_us);
  }

  sandbox::Command command;
  command.argv = {environment.native_worker.string()};
  command.read_only.push_back({environment.native_worker.string(), "", false});
  worker::equip(command, judge::thread_count(options), device->worker_needs());
  auto started = steps.time("native worker: start", [&] {
    return must(worker::Worker::start(workshop.launcher(), command));
  });
  judge::Contestant contestant(std::move(started), candidate, build, *reference, options, *device,
                               environment.heap_library);
  steps.time("candidate: load", [&] { return must(contestant.load()); });
  std::vector<Tolerance> tolerance;
  for (const auto& one : reference->tolerances())
    tolerance.push_back({one.atol, one.rtol, one.norm_rtol});

  for (int i = 0; i < rounds; ++i) {
    const auto calls = judge::random_calls(calls_per_turn, slots);
    draw(calls);
    must(reference->expect(calls));
    must(reference->prepare_turn(reference->draw_cpu()));
    reference->arm_turn(calls);
    steps.add("reference's turn: beside a loaded candidate", must(reference->turn()).wall_us);
  }
  for (int i = 0; i < rounds; ++i) {
    const auto calls = judge::random_calls(calls_per_turn, slots);
    steps.time("draw", [&] { return draw(calls); });
    steps.time("expect", [&] { return must(reference->expect(calls)); });
    const auto cpu = reference->draw_cpu();
    steps.time("prepare the reference", [&] { return must(reference->prepare_turn(cpu)); });
    steps.time("arm the reference", [&] { return reference->arm_turn(calls); });
    steps.add(
        "reference's turn: in a pair, first",
        steps.time("reference's turn, whole", [&] { return must(reference->turn()); }).wall_us);
    steps.time("prepare the candidate", [&] { return must(contestant.prepare_turn(true, cpu)); });
    steps.time("arm the candidate", [&] { return contestant.arm_turn(calls); });
    steps.add(
        "candidate's turn: in a pair, second",
        steps.time("candidate's turn, whole", [&] { return must(contestant.turn(10s, tolerance)); })
            .wall_us);
    steps.time("checks", [&] { return must(contestant.checks()); });
    steps.time("pids", [&] { return contestant.worker().process().pids(); });
    steps.time("telemetry", [&] { return device->telemetry(); });
    reference->arm_turn(calls);
    steps.add("reference's turn: in a pair, again", must(reference->turn()).wall_us);
  }
  contestant.worker().process().kill();
  for (int i = 0; i < rounds; ++i) {
    const auto calls = judge::random_calls(calls_per_turn, slots);
    draw(calls);
    must(reference->prepare_turn(reference->draw_cpu()));
    reference->arm_turn(calls);
    steps.add("reference's turn: alone again", must(reference->turn()).wall_us);
  }
  steps.print();
  fmt::print("{} calls a turn\n", calls_per_turn);
  return 0;
}
