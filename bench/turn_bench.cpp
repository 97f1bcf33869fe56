// What the evaluator's own machinery costs: starting workers, and an empty turn.
//
//   build/release/bench/turn_bench [--device cuda:0] [--rounds 200] [--python PATH]
//   build/release/bench/turn_bench --pause 5 --bound
//
// --pause: ms between a worker's stop and its turn, as where inputs are large. --bound: each turn
// on a CPU that is drawn for it and kept awake, as a GPU's turns are.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/judging.h"
#include "device/cpu/affinity.h"
#include "device/cpu/spin.h"
#include "judge/cpu_draw.h"
#include "judge/device.h"
#include "judge/options.h"
#include "judge/reference.h"
#include "judge/turn.h"
#include "measure/statistics.h"
#include "problem/problem.h"
#include "worker/layout.h"
#include "worker/torch_pool.h"
#include "worker/worker.h"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

void print(const std::string& what, const std::vector<double>& us) {
  fmt::print("{:<44} {:>10.1f} {:>10.1f} {:>10.1f}  ({})\n", what, kb::measure::quantile(us, 0.1),
             kb::measure::quantile(us, 0.5), kb::measure::quantile(us, 0.9), us.size());
}

template <class Expected>
auto must(Expected expected) {
  if (!expected) {
    if constexpr (requires { expected.error().text; })
      fmt::print(stderr, "{}\n", expected.error().text);
    std::exit(2);
  }
  if constexpr (!std::is_void_v<typename Expected::value_type>) return std::move(*expected);
}

kb::sandbox::Command native_command(unsigned threads, const kb::Device& device) {
  kb::sandbox::Command command;
  const auto program = kb::cli::companion("kernelbench-native-worker");
  command.argv = {program.string()};
  command.read_only.push_back({program.string(), "", false});
  kb::worker::equip(command, threads, device.worker_needs());
  return command;
}

constexpr const char* kIdentity =
    "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x "
    "+ 1\n\n\n"
    "def get_inputs():\n    return [torch.rand(1024)]\n\n\ndef get_init_inputs():\n    return []\n";

struct Rhythm {
  int rounds;
  std::chrono::milliseconds pause;
  std::vector<int> cpus;  // to draw from; none: workers are not bound
};

void empty_turns(const std::string& kind, kb::worker::Worker& worker, kb::Device& device,
                 const Rhythm& rhythm, bool rehearses) {
  kb::judge::CpuDraw cpus(rhythm.cpus);
  std::mt19937_64 random(1);
  for (const bool flush : {false, true}) {
    std::vector<double> wall, done, stop, prepare, flushes;
    for (int i = 0; i < rhythm.rounds; ++i) {
      worker.bind_cpu(cpus.draw(random()));
      auto start = Clock::now();
      if (rehearses) must(worker.prepare(10s));
      prepare.push_back(us_since(start));
      start = Clock::now();
      if (flush) device.flush_caches();
      must(device.synchronize());
      flushes.push_back(us_since(start));
      const kb::worker::Call call{0, 0};
      device.begin_watch();
      worker.arm(std::span(&call, 1), false);
      // As the judge waits: awake.
      for (const auto end = Clock::now() + rhythm.pause; Clock::now() < end;) kb::cpu::spin_pause();
      if (!device.end_watch()) fmt::print("the device is not idle\n");
      const auto turn = must(kb::judge::closed_turn(worker, device, 10s));
      wall.push_back(turn.wall_us);
      done.push_back(turn.done_us);
      stop.push_back(turn.wall_us - turn.done_us);
    }
    const std::string prefix = kind + (flush ? ", caches flushed: " : ", caches warm: ");
    print(prefix + "empty turn", wall);
    print(prefix + "go to done", done);
    print(prefix + (device.ends_turns() ? "done to closed" : "done to stopped"), stop);
    if (rehearses) print(prefix + "prepare", prepare);
    if (flush) print(fmt::format("flush of {} MiB", 2 * device.cache_bytes() >> 20), flushes);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 200, pause_ms = 0, starts_of_torch = 5;
  bool bound = false;
  std::string python, device_name = "cpu";
  CLI::App app{"What the evaluator's own machinery costs"};
  app.add_option("--rounds", rounds);
  app.add_option("--pause", pause_ms);
  app.add_flag("--bound", bound);
  app.add_option("--starts", starts_of_torch, "of torch workers, each followed by 6 s of rest");
  app.add_option("--python", python);
  app.add_option("--device", device_name);
  CLI11_PARSE(app, argc, argv);

  auto opened = kb::judge::open_device(device_name);
  if (!opened) return fmt::print(stderr, "{}\n", opened.error()), 2;
  kb::Device& device = **opened;
  const std::string kind = kb::judge::kind_of_device(device_name);
  kb::sandbox::Launcher launcher(kb::sandbox::Mode::automatic);
  const Rhythm rhythm{rounds, std::chrono::milliseconds(pause_ms),
                      bound ? kb::cpu::cpus_of(0) : std::vector<int>()};
  fmt::print("{:<44} {:>10} {:>10} {:>10}\n", "microseconds", "p10", "p50", "p90");
  std::vector<double> starts;
  for (int i = 0; i < 20; ++i) {
    const auto start = Clock::now();
    auto worker = must(kb::worker::Worker::start(launcher, native_command(2, device)));
    must(worker.await_hello(10s));
    starts.push_back(us_since(start));
  }
  print("native worker: start to hello", starts);

  const auto root = kb::problem::installation_root();
  const auto environment = kb::worker::probe_python(kb::worker::choose_python(python, root));
  if (!environment) return fmt::print(stderr, "{}\n", environment.error()), 2;
  kb::worker::TorchPool pool(launcher,
                             {*environment, root / "python", 2, 8ull << 30, device.worker_needs()});
  std::vector<double> cold, pooled;
  for (int i = 0; i < starts_of_torch; ++i) {
    auto start = Clock::now();
    auto first = must(pool.take());
    must(first.await_hello(120s));
    cold.push_back(us_since(start));
    must(pool.fill(1));
    std::this_thread::sleep_for(6s);
    start = Clock::now();
    auto second = must(pool.take());
    must(second.await_hello(120s));
    pooled.push_back(us_since(start));
  }
  if (starts_of_torch > 0) {
    print("torch worker, cold: start to hello", cold);
    print("torch worker, from the pool", pooled);
  }

  kb::worker::ProblemSpec spec;
  spec.inputs = {{kb::TensorSpec{kb::DType::float32, {1024}}, nullptr}};
  spec.outputs = {{kb::DType::float32, {1024}}};
  auto native = must(kb::worker::Worker::start(launcher, native_command(2, device)));
  must(native.await_hello(10s));
  auto layout = kb::worker::plan_layout(
      spec, 1, {{.name = "outputs", .float64 = false, .guard_bytes = 0}}, false);
  const auto native_data = must(device.allocate(layout.size, true));
  auto start = Clock::now();
  must(native.attach(kb::worker::to_json(layout, spec, kind), *native_data, nullptr, 10s));
  print("native worker: attach", {us_since(start)});
  must(native.request({{"op", "load_native"}, {"stub", true}}, {}, 10s));
  must(native.enter_turns(10s, false));
  empty_turns("native", native, device, rhythm, false);

  auto torch = must(pool.take());
  must(torch.await_hello(120s));
  kb::judge::Options options;
  options.device = device_name;
  options.threads = 2;
  auto request = kb::judge::load_request("load_problem", options);
  request["source"] = kIdentity;
  request["path"] = "identity.py";
  must(torch.request(request, {}, 60s));
  layout = kb::worker::plan_layout(spec, 1, {}, true);
  const auto torch_data = must(device.allocate(layout.size, true));
  must(torch.attach(kb::worker::to_json(layout, spec, kind), *torch_data, nullptr, 10s));
  const nlohmann::json output = {{"dtype", "float32"}, {"shape", spec.outputs.at(0).shape}};
  must(torch.enter_turns(10s, false, {{"stub", nlohmann::json::array({output})}}));
  empty_turns("torch", torch, device, rhythm, true);
  // The same worker with a model in the place of the stub.
  must(torch.leave_turns(10s));
  request = kb::judge::load_request("load_candidate", options);
  request["model"] = "Model";
  request["source"] = request["problem_source"] = kIdentity;
  request["path"] = request["problem_path"] = "identity.py";
  request["extensions"] = nlohmann::json::array();
  must(torch.request(request, {}, 60s));
  must(torch.enter_turns(10s, false));
  empty_turns("torch, x + 1", torch, device, rhythm, true);
  fmt::print("stopped by {}\n", native.process().freezer_name());
  return 0;
}
