// kernelbench doctor: what this machine can run, and what is missing.

#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "build/build.h"
#include "build/nvcc.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/finding.h"
#include "cli/judging.h"
#include "cli/summary.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/memory.h"
#include "device/cuda/cuda.h"
#include "device/oldest_driver.h"
#include "problem/problem.h"
#include "profile/ncu.h"
#include "sandbox/sandbox.h"
#include "worker/python_environment.h"

namespace kb::cli {
namespace {

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

// "580.65.06"; empty without a driver.
std::string driver_version() {
  for (const char* path : {"/proc/driver/nvidia/version", "/sys/module/nvidia/version"}) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  …", or the number alone
    std::istringstream words(line);
    for (std::string word; words >> word;)
      if (word.find('.') != std::string::npos &&
          word.find_first_not_of("0123456789.") == std::string::npos)
        return word;
  }
  return "";
}

// Which PyTorch there is, and whether it can use this machine's GPUs.
Finding examine_torch(const worker::PythonEnvironment& python) {
  Finding finding{"python",
                  fmt::format("{}: Python {}, PyTorch {}", python.executable, python.python_version,
                              python.torch_version),
                  Finding::State::ready,
                  {{"Python", python.python_version}, {"PyTorch", python.torch_version}}};
  if (python.torch_cuda.empty()) return finding;
  const std::string_view oldest = oldest_driver(std::atoi(python.torch_cuda.c_str()));
  finding.detail += fmt::format(" for CUDA {} (driver {} or later)", python.torch_cuda, oldest);
  const std::string driver = driver_version();
  if (driver.empty() || is_driver_as_new(driver, oldest)) return finding;
  finding.detail += fmt::format(
      "; the NVIDIA driver {} is too old for it: update the driver, or give a Python whose PyTorch "
      "is for an older CUDA",
      driver);
  finding.state = Finding::State::note;
  return finding;
}

// What of a .cu candidate can be done here. Nothing that is missing makes a machine unfit: it can
// still judge on the CPU.
Finding check_cuda_backend(const std::expected<build::Nvcc, std::string>& nvcc,
                           build::Builder* builder) {
  const auto note = [](std::string detail) {
    return Finding{"cuda_cpp backend", std::move(detail), Finding::State::note};
  };
  if (!nvcc) return note("nvcc is missing: .cu candidates need to be compiled elsewhere");
  const bool gpu = cuda::device_count() > 0;
  if (builder != nullptr) {
    const auto built = builder->build_cuda(
        "extern \"C\" __global__ void kernel() {}\nextern \"C\" int kb_run(const void*) { "
        "kernel<<<1, 1>>>(); return cudaGetLastError(); }\n",
        gpu ? cuda::architecture(0) : "sm_90");
    if (!built) return note(built.error());
    if (built->status != build::Status::ok)
      return note("nvcc does not compile: " + telling_line(built->log));
  }
  const std::string driver = driver_version();
  const std::string need = fmt::format("libraries made by CUDA {} need driver {} or later",
                                       nvcc->version, oldest_driver(nvcc->major));
  if (!gpu && driver.empty())
    return note(
        fmt::format("the NVIDIA driver is missing ({}); .cu candidates can be compiled, "
                    "for --arch",
                    need));
  if (!driver.empty() && !is_driver_as_new(driver, oldest_driver(nvcc->major)))
    return note(fmt::format("the NVIDIA driver {} is too old: {}", driver, need));
  if (!gpu)
    return note("a GPU that can be used is missing; .cu candidates can be compiled, for --arch");
  return {"cuda_cpp backend", fmt::format("ready ({})", need), Finding::State::ready};
}

// What `profile` can read. Without it, that falls back to PyTorch's profiler.
Finding check_profiler() {
  const auto ncu = profile::find_ncu(profile::ncu_folders());
  if (!ncu) return {"profiler", ncu.error(), Finding::State::note};
  const std::string found = fmt::format("{}, version {}", ncu->path.string(), ncu->version);
  std::ifstream file("/proc/driver/nvidia/params");
  const std::string parameters(std::istreambuf_iterator<char>(file), {});
  if (profile::for_administrators_only(parameters))
    return {"profiler",
            fmt::format("{}; {}", found, profile::obstacle_in(profile::kPermissionError)),
            Finding::State::note};
  return {"profiler", found, Finding::State::ready};
}

// `torch_version` is empty where there is no PyTorch to measure by.
void add_devices(std::vector<Finding>& findings, const std::string& torch_version) {
  const auto add_ceilings = [&](const std::string& name, const Device& device) {
    if (!torch_version.empty())
      findings.push_back(examine_ceilings(name, device.describe(), torch_version));
  };
  add_ceilings("cpu", cpu::CpuDevice());
  const int count = cuda::device_count();
  findings.push_back(
      {"gpu", cuda::availability(), count > 0 ? Finding::State::ready : Finding::State::note});
  for (int i = 0; i < count; ++i) {
    const std::string name = fmt::format("cuda:{}", i);
    if (const auto device = cuda::open_device(i)) {
      findings.push_back({(*device)->name(), (*device)->describe().dump(), Finding::State::ready});
      add_ceilings(name, **device);
    } else {
      findings.push_back({name, device.error(), Finding::State::missing});
    }
  }
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
  const auto python = worker::probe_python(worker::choose_python(python_option, root));
  if (python)
    findings.push_back(examine_torch(*python));
  else
    findings.push_back({"python", python.error(), Finding::State::missing});
  findings.push_back(check_sandbox());
  sandbox::Launcher launcher(sandbox::Mode::automatic);
  build::Options build;
  build.cache_directory = build::default_cache_directory();
  build.include_directory = root / "include";
  auto builder = build::Builder::create(build, launcher);
  if (builder)
    findings.push_back(
        {"compiler", "g++; build cache " + build.cache_directory.string(), Finding::State::ready});
  else
    findings.push_back({"compiler", builder.error(), Finding::State::missing});
  if (::access(companion("kernelbench-native-worker").c_str(), X_OK) == 0)
    findings.push_back({"cpp backend", "ready", Finding::State::ready});
  else
    findings.push_back({"cpp backend",
                        "kernelbench-native-worker is missing beside kernelbench: build again",
                        Finding::State::missing});
  const auto nvcc = build::find_nvcc(build::nvcc_folders());
  if (nvcc)
    findings.push_back({"cuda toolkit",
                        fmt::format("{}, version {}", nvcc->path.string(), nvcc->version),
                        Finding::State::ready,
                        {{"nvcc", nvcc->version}}});
  else
    findings.push_back({"cuda toolkit", nvcc.error(), Finding::State::note});
  findings.push_back(check_cuda_backend(nvcc, builder ? &*builder : nullptr));
  if (python)
    for (auto& finding :
         examine_languages(*python, nvcc, builder ? &*builder : nullptr, cuda::device_count() > 0))
      findings.push_back(std::move(finding));
  findings.push_back(check_profiler());
  add_devices(findings, python ? python->torch_version : "");
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
      rows.push_back({{"what", finding.what},
                      {"state", word},
                      {"detail", finding.detail},
                      {"versions", finding.versions}});
    else
      fmt::print("{:<8} {:<22} {}\n", word, finding.what, finding.detail);
  }
  if (json)
    fmt::print("{}\n", nlohmann::json{{"fit", fit}, {"findings", rows}}.dump(2));
  else
    fmt::print("{}\n", !fit ? "Something is missing: see above."
                       : cuda::device_count() > 0
                           ? "This machine can judge kernels on its GPU and on the CPU."
                           : "This machine can judge kernels on the CPU.");
  return fit ? kOk : kFindings;
}

}  // namespace

Command add_doctor(CLI::App& root) {
  struct Flags {
    std::string python;
    bool json = false, measure = false;
    std::string device = "auto";
  };
  auto flags = std::make_shared<Flags>();
  auto* app = root.add_subcommand("doctor", "What this machine can run, and what is missing");
  app->add_option("--python", flags->python, "the Python to examine");
  app->add_flag("--json", flags->json, "print one JSON object");
  auto* measure =
      app->add_flag("--measure", flags->measure,
                    "first measure what a copy and PyTorch's matrix products reach here, and store "
                    "it: the speed of light of later results");
  app->add_option("--device,--devices", flags->device,
                  "with --measure: cpu, cuda:0, or several; auto: a GPU where there is one")
      ->needs(measure)
      ->capture_default_str();
  app->footer(
      "Example:  kernelbench doctor\n          kernelbench doctor --measure --device cuda:0");
  return {app, [flags] {
            if (flags->measure) {
              auto devices = devices_of({.device = flags->device});
              if (devices.empty()) devices = {cuda::device_count() > 0 ? "cuda:0" : "cpu"};
              measure_and_store(devices, flags->python);
            }
            return doctor(flags->python, flags->json);
          }};
}

}  // namespace kb::cli
