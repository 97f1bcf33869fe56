// kernelbench doctor: what this machine can run, and what is missing.

#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "build/build.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/judging.h"
#include "device/cpu/memory.h"
#include "problem/problem.h"
#include "sandbox/sandbox.h"
#include "worker/python_environment.h"

namespace kb::cli {
namespace {

struct Finding {
  std::string what, detail;
  enum class State { ready, missing, note } state;
};

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

Finding check_sandbox() {
  sandbox::Launcher launcher(sandbox::Mode::automatic);
  if (!launcher.unavailable_reason().empty())
    return {"sandbox", launcher.unavailable_reason(), Finding::State::missing};
  sandbox::Command command;
  command.argv = {"/bin/sleep", "5"};
  auto process = launcher.start(command);
  if (!process) return {"sandbox", process.error(), Finding::State::missing};
  const bool stopped = process->freeze();
  return {"sandbox",
          fmt::format("bubblewrap; workers are stopped by {}{}", process->freezer_name(),
                      stopped ? "" : ", which failed just now"),
          stopped ? Finding::State::ready : Finding::State::missing};
}

std::vector<Finding> examine(const std::string& python_option) {
  std::vector<Finding> findings;
  struct sysinfo memory {};
  ::sysinfo(&memory);
  findings.push_back({"cpu",
                      fmt::format("{}, {} CPUs, {:.0f} GB, last-level cache {} MiB", cpu_model(),
                                  std::thread::hardware_concurrency(),
                                  static_cast<double>(memory.totalram) * memory.mem_unit / 1e9,
                                  cpu::last_level_cache_bytes() >> 20),
                      Finding::State::ready});
  const auto root = problem::installation_root();
  if (auto catalog = problem::Catalog::open(problem::bundled_root()))
    findings.push_back(
        {"problems",
         fmt::format("{} in {}", catalog->entries().size(), problem::bundled_root().string()),
         Finding::State::ready});
  else
    findings.push_back({"problems", catalog.error(), Finding::State::missing});
  if (auto python = worker::probe_python(worker::choose_python(python_option, root)))
    findings.push_back({"python",
                        fmt::format("{}: Python {}, PyTorch {}", python->executable,
                                    python->python_version, python->torch_version),
                        Finding::State::ready});
  else
    findings.push_back({"python", python.error(), Finding::State::missing});
  findings.push_back(check_sandbox());
  sandbox::Launcher launcher(sandbox::Mode::automatic);
  build::Options build;
  build.cache_directory = build::default_cache_directory();
  build.include_directory = root / "include";
  if (auto builder = build::Builder::create(build, launcher))
    findings.push_back(
        {"compiler", "g++; build cache " + build.cache_directory.string(), Finding::State::ready});
  else
    findings.push_back({"compiler", builder.error(), Finding::State::missing});
  if (::access((program_folder() / "kernelbench-native-worker").c_str(), X_OK) == 0)
    findings.push_back({"cpp backend", "ready", Finding::State::ready});
  else
    findings.push_back({"cpp backend",
                        "kernelbench-native-worker is missing beside kernelbench: build again",
                        Finding::State::missing});
  findings.push_back({"gpu", "this version judges on the CPU only", Finding::State::note});
  return findings;
}

int doctor(const std::string& python, bool json) {
  const auto findings = examine(python);
  bool fit = true;
  auto rows = nlohmann::json::array();
  for (const auto& finding : findings) {
    const bool missing = finding.state == Finding::State::missing;
    fit = fit && !missing;
    const char* word = missing ? "missing" : finding.state == Finding::State::note ? "note" : "ok";
    if (json)
      rows.push_back({{"what", finding.what}, {"state", word}, {"detail", finding.detail}});
    else
      fmt::print("{:<8} {:<12} {}\n", word, finding.what, finding.detail);
  }
  if (json)
    fmt::print("{}\n", nlohmann::json{{"fit", fit}, {"findings", rows}}.dump(2));
  else
    fmt::print("{}\n", fit ? "This machine can judge kernels on the CPU."
                           : "Something is missing: see above.");
  return fit ? kOk : kFindings;
}

}  // namespace

Command add_doctor(CLI::App& root) {
  struct Flags {
    std::string python;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  auto* app = root.add_subcommand("doctor", "What this machine can run, and what is missing");
  app->add_option("--python", flags->python, "the Python to examine");
  app->add_flag("--json", flags->json, "print one JSON object");
  app->footer("Example:  kernelbench doctor");
  return {app, [flags] { return doctor(flags->python, flags->json); }};
}

}  // namespace kb::cli
