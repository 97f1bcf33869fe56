// Races references against themselves: the evaluator's own noise and bias, in the unit that it
// reports.
//
//   build/release/bench/self_race_bench --runs 20 --ids level1/19,level1/40,level2/12,level2/99
//   build/release/bench/self_race_bench --runs 20 --slowdown 0.02    # plants a slowdown of 2 %
//
// Each run judges the problem's own `Model` as a `ModelNew`, through the ordinary `kernelbench
// run`, with a fresh worker. A run counts as "faster" when its interval lies above 1, as "slower"
// when it lies below.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "cli/failure.h"
#include "measure/statistics.h"
#include "problem/problem.h"
#include "store/store.h"

namespace {

namespace fs = std::filesystem;

// On a GPU the spinning is a kernel's, behind the model's own; how long both take is measured in
// the first call.
constexpr const char* kSlowedOnGpu = R"(

import torch as _torch


def _milliseconds(work):
    begin, end = (_torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


class ModelNew(Model):
    def forward(self, *args):
        if not hasattr(self, "cycles"):
            own = sorted(_milliseconds(lambda: Model.forward(self, *args)) for _ in range(12))[3]
            spin = sorted(_milliseconds(lambda: _torch.cuda._sleep(10_000_000)) for _ in range(4))[1]
            self.cycles = int({} * own / spin * 10_000_000)
        result = super().forward(*args)
        _torch.cuda._sleep(self.cycles)
        return result
)";

// The reference under the name that a candidate has; with a slowdown it then spins for that share
// of its own time.
std::string candidate_of(const kb::problem::Problem& problem, double slowdown, bool gpu) {
  if (slowdown == 0) return problem.source + "\n\nModelNew = Model\n";
  if (gpu) return problem.source + fmt::format(kSlowedOnGpu, slowdown);
  return problem.source +
         fmt::format(
             "\n\nimport time\n\n\nclass ModelNew(Model):\n    def forward(self, *args):\n        "
             "start = time.perf_counter()\n"
             "        result = super().forward(*args)\n        end = start + (time.perf_counter() "
             "- start) * {}\n"
             "        while time.perf_counter() < end:\n            pass\n        return result\n",
             1 + slowdown);
}

struct Tally {
  std::vector<double> speedups, times_us;
  int faster = 0, slower = 0, noisy = 0, failed = 0;
};

void print(const std::string& name, const Tally& tally) {
  std::vector<double> off;
  for (const double speedup : tally.speedups) off.push_back(std::abs(speedup - 1));
  fmt::print("{:<12} {:>5} {:>10.1f} {:>8.4f} {:>8.4f} {:>8.4f} {:>7} {:>7} {:>6} {:>7}\n", name,
             tally.speedups.size(), kb::measure::median(tally.times_us),
             kb::measure::median(tally.speedups), kb::measure::quantile(off, 0.5),
             kb::measure::quantile(off, 0.95), tally.faster, tally.slower, tally.noisy,
             tally.failed);
}

}  // namespace

int main(int argc, char** argv) {
  std::string ids = "level1/19,level1/40,level2/12,level2/99,level3/1", size = "small",
              device = "cpu", keep;
  int runs = 20, pairs = 0, limit_s = 0;
  double slowdown = 0;
  CLI::App app{"Races references against themselves"};
  app.add_option("--ids", ids);
  app.add_option("--runs", runs, "of each problem");
  app.add_option("--size", size);
  app.add_option("--pairs", pairs);
  app.add_option("--device", device);
  app.add_option("--limit", limit_s, "seconds; what has been judged by then counts");
  app.add_option("--slowdown", slowdown, "planted in the candidate, as a share");
  app.add_option("--keep", keep, "write the samples and results to this folder, and keep it");
  CLI11_PARSE(app, argc, argv);

  std::string folder = keep;
  if (folder.empty()) {
    folder = (fs::temp_directory_path() / "kernelbench-self-race-XXXXXX").string();
    if (!::mkdtemp(folder.data())) return 2;
  }
  fs::create_directories(folder);
  std::stringstream list(ids);
  for (std::string id; std::getline(list, id, ',');) {
    const auto problem = kb::problem::find(id);
    if (!problem) return fmt::print(stderr, "{}\n", problem.error()), 2;
    for (int run = 0; run < runs; ++run)
      std::ofstream(fs::path(folder) / fmt::format("level_{}_problem_{}_sample_{}_kernel.py",
                                                   problem->id->level, problem->id->number, run))
          << candidate_of(*problem, slowdown, device != "cpu");
  }
  const auto binary =
      fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "kernelbench";
  const std::string command =
      fmt::format("{}'{}' run '{}' --device {} --size {} --no-stress --trials 1{} >&2",
                  limit_s > 0 ? fmt::format("timeout -k 10 {} ", limit_s) : "", binary.string(),
                  folder, device, size, pairs > 0 ? fmt::format(" --pairs {}", pairs) : "");
  const int status = std::system(command.c_str());  // NOLINT: our own binary, no other thread
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 2;
  const bool at_limit = limit_s > 0 && (code == 124 || code == 137);  // as timeout says it
  if (code > kb::cli::kFindings && !at_limit) return 2;

  auto store = kb::store::Store::open(fs::path(folder) / "kernelbench.db");
  if (!store) return fmt::print(stderr, "{}\n", store.error()), 2;
  const auto rows = store->rows();
  if (!rows) return fmt::print(stderr, "{}\n", rows.error()), 2;
  std::map<std::string, Tally> tallies;
  Tally all;
  for (const auto& row : *rows) {
    const auto json = nlohmann::json::parse(row.result_json);
    for (Tally* tally : {&tallies[row.key.problem], &all}) {
      if (!json["speedup"].is_number()) {
        ++tally->failed;
        continue;
      }
      tally->speedups.push_back(json["speedup"]);
      tally->times_us.push_back(json["reference_time_us"]);
      tally->faster += json["speedup_ci95"][0] > 1;
      tally->slower += json["speedup_ci95"][1] < 1;
      tally->noisy += std::ranges::count(json["flags"], nlohmann::json("noisy")) > 0;
    }
  }
  fmt::print("{:<12} {:>5} {:>10} {:>8} {:>8} {:>8} {:>7} {:>7} {:>6} {:>7}\n", "problem", "runs",
             "us", "median", "|s-1|", "p95", "faster", "slower", "noisy", "failed");
  for (const auto& [name, tally] : tallies) print(name, tally);
  print("all", all);
  if (keep.empty()) fs::remove_all(folder);
  return 0;
}
