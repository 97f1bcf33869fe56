#include "cli/judging.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "cli/failure.h"
#include "device/cuda/cuda.h"
#include "problem/problem.h"
#include "worker/doorbell.h"

namespace kb::cli {
namespace {

constexpr double kMemoryGb = 8;
// Models are made on the host; the largest of the bundled ones (level3/2) takes 8.6 GB there.
constexpr double kGpuMemoryGb = 16;
// Less than this and no worker starts.
constexpr double kLeastMemoryGb = 0.25;

judge::milliseconds limit_of(double seconds) {
  return judge::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

sandbox::Mode mode_from(const std::string& word) {
  if (word == "require") return sandbox::Mode::require;
  if (word == "none") return sandbox::Mode::none;
  return sandbox::Mode::automatic;
}

judge::Timer timer_from(const std::string& word) {
  if (word == "event") return judge::Timer::event;
  if (word == "do_bench") return judge::Timer::do_bench;
  if (word == "host") return judge::Timer::host;
  return judge::Timer::sealed;
}

// `batch_size=16` → {"batch_size": 16}. The value is JSON, or a Python tuple of numbers, or else a
// string.
void add_assignment(nlohmann::json& set, const std::string& text) {
  const auto equals = text.find('=');
  if (equals == 0 || equals == std::string::npos)
    throw UsageError(fmt::format("--set takes NAME=VALUE, not '{}'", text));
  std::string value = text.substr(equals + 1);
  if (value.size() > 1 && value.front() == '(' && value.back() == ')')
    value = "[" + value.substr(1, value.size() - 2) + "]";
  auto json = nlohmann::json::parse(value, nullptr, false);
  set[text.substr(0, equals)] =
      json.is_discarded() ? nlohmann::json(text.substr(equals + 1)) : json;
}

}  // namespace

std::filesystem::path companion(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  // Benchmarks and tests lie one folder below the programs.
  for (const auto& place : {folder / name, folder.parent_path() / name,
                            folder.parent_path() / "lib" / "kernelbench" / name})
    if (fs::exists(place, error)) return place;
  return folder / name;
}

void add_sandbox_option(CLI::App& app, std::string& sandbox) {
  app.add_option("--sandbox", sandbox, "auto, require or none")
      ->check(CLI::IsMember({"auto", "require", "none"}))
      ->capture_default_str();
}

void add_python_option(CLI::App& app, std::string& python) {
  app.add_option(
      "--python", python,
      "the Python with PyTorch >= 2.9; default: an active virtual environment, .venv, python3");
}

void add_build_options(CLI::App& app, JudgingFlags& flags) {
  add_sandbox_option(app, flags.sandbox);
  app.add_option("--compile-timeout", flags.compile_timeout_s, "seconds")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_python_option(app, flags.python);
  app.add_option("--cache", flags.cache, "folder of the build cache; default ~/.cache/kernelbench");
}

void add_model_options(CLI::App& app, JudgingFlags& flags) {
  app.add_option("--size", flags.size,
                 "the problem's size: public, or a key of its SIZES such as small")
      ->capture_default_str();
  app.add_option("--set", flags.set,
                 "replace a constant of the problem, after --size: NAME=VALUE (repeatable)");
  app.add_option("--precision", flags.precision, "of inputs and weights")
      ->check(CLI::IsMember({"fp32", "fp16", "bf16"}))
      ->capture_default_str();
  app.add_option("--device,--devices", flags.device,
                 "cpu, cuda:0, or several as cuda:0,cuda:1; auto: a GPU where there is one")
      ->capture_default_str();
  app.add_option(
      "--backend", flags.backend,
      "what the candidate is written in, where the source does not tell: triton, cute …");
  app.add_option("--threads", flags.threads,
                 "CPU threads of the model, on both sides; default every CPU")
      ->check(CLI::Range(1, 4096));
  app.add_option("--memory", flags.memory_gb,
                 "GB of the host's memory that a worker may allocate, beside inputs and outputs; "
                 "default 8, with a GPU 16")
      ->check(CLI::Range(kLeastMemoryGb, 1e6));
  app.add_option("--timeout", flags.timeout_s, "seconds for one evaluation, compilation aside")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_build_options(app, flags);
}

void add_judging_options(CLI::App& app, JudgingFlags& flags) {
  const auto positive = CLI::PositiveNumber;
  app.add_option(
         "--rules", flags.rules,
         "own, or kernelbench: allclose against the default reference decides, no stress trials")
      ->check(CLI::IsMember({"own", "kernelbench"}))
      ->capture_default_str();
  app.add_option("--trials", flags.trials, "correctness trials on fresh random inputs")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--no-stress", flags.no_stress, "leave out the trials on transformed inputs");
  app.add_flag("--no-timing", flags.no_timing, "judge correctness only");
  app.add_option("--timer", flags.timer,
                 "sealed: the judge times; for comparison with other tools, never verified, the "
                 "worker times itself: event and do_bench (a GPU's events), host (its own clock)")
      ->check(CLI::IsMember({"sealed", "event", "do_bench", "host"}))
      ->capture_default_str();
  app.add_option("--pairs", flags.pairs, "timed pairs of turns; default by the size, 10 to 45")
      ->check(CLI::Range(1, 100000));
  app.add_option(
         "--calls", flags.calls,
         "calls of a turn, as far as there is memory for them; default by the time of one, 1 "
         "to 16 on a CPU and 256 on a GPU")
      ->check(CLI::Range(1, static_cast<int>(worker::kMaxCalls)));
  app.add_option("--excessive-speedup", flags.excessive_speedup, "flag a larger speedup for review")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--load-timeout", flags.load_timeout_s, "seconds for import and construction")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--first-call-timeout", flags.first_call_timeout_s,
                 "seconds for the first call, which may compile")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--call-timeout", flags.call_timeout_s, "seconds for each later call")
      ->check(positive)
      ->capture_default_str();
  add_model_options(app, flags);
}

std::vector<std::string> devices_of(const JudgingFlags& flags) {
  std::vector<std::string> devices;
  if (flags.device == "auto") return devices;
  std::stringstream list(flags.device);
  for (std::string name; std::getline(list, name, ',');) {
    name = value_or_usage_error(judge::parse_device(name)).text();
    if (std::ranges::find(devices, name) == devices.end()) devices.push_back(name);
  }
  if (devices.empty()) throw UsageError("--device names no device; give cpu, cuda:0 or auto");
  return devices;
}

std::string device_for(problem::Language language, const std::vector<std::string>& devices) {
  const auto gpu = std::ranges::find_if(devices, [](const auto& d) { return d != "cpu"; });
  const bool cpu = std::ranges::find(devices, "cpu") != devices.end();
  if (language == problem::Language::cpp) {
    if (!devices.empty() && !cpu)
      throw UsageError("a .cpp candidate runs on the CPU: judge it with --device cpu");
    return "cpu";
  }
  if (problem::needs_gpu(language)) {
    if (!devices.empty() && gpu == devices.end())
      throw UsageError(fmt::format(
          "a {} candidate needs a GPU: judge it with --device cuda:0",
          language == problem::Language::cuda_cpp ? ".cu" : problem::name_of(language)));
    return devices.empty() ? "cuda:0" : *gpu;
  }
  if (!devices.empty()) return devices.front();
  return cuda::device_count() > 0 ? "cuda:0" : "cpu";
}

nlohmann::json assignments(const std::vector<std::string>& set) {
  auto json = nlohmann::json::object();
  for (const auto& assignment : set) add_assignment(json, assignment);
  return json;
}

std::expected<problem::Candidate, std::string> load_candidate(const JudgingFlags& flags,
                                                              const std::filesystem::path& path) {
  auto candidate = problem::load_candidate(path);
  if (!candidate || flags.backend.empty()) return candidate;
  const auto language = problem::language_named(flags.backend);
  if (!language) {
    std::vector<std::string_view> names;
    for (const auto one : problem::all_languages()) names.push_back(problem::name_of(one));
    throw UsageError(fmt::format("there is no backend '{}'; the backends are {}", flags.backend,
                                 fmt::join(names, ", ")));
  }
  if (auto fits = problem::set_language(*candidate, *language); !fits)
    throw UsageError(fits.error());
  return candidate;
}

nlohmann::json refusal_json(const problem::Problem& problem, const problem::Candidate& candidate,
                            const std::string& why, const judge::Options& options) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(candidate.path, error) ||
      ::access(candidate.path.c_str(), R_OK) != 0)
    throw UsageError(why);
  return judge::to_json(judge::unjudged(problem, candidate, judge::Verdict::static_reject, why),
                        options);
}

judge::Options options_from(const JudgingFlags& flags, const std::string& device) {
  judge::Options options;
  options.device = device;
  options.precision = flags.precision;
  options.size = flags.size;
  options.set = assignments(flags.set);
  options.rules = flags.rules == "kernelbench" ? judge::Rules::kernelbench : judge::Rules::own;
  options.correctness_trials = flags.trials;
  options.stress = !flags.no_stress;
  options.timing = !flags.no_timing;
  options.timer = timer_from(flags.timer);
  if (device == "cpu" &&
      (options.timer == judge::Timer::event || options.timer == judge::Timer::do_bench))
    throw UsageError(
        fmt::format("--timer {} needs the events of a GPU, and a CPU has none: use sealed or host",
                    flags.timer));
  options.pairs = flags.pairs;
  options.calls = flags.calls;
  options.threads = flags.threads;
  options.excessive_speedup = flags.excessive_speedup;
  const double memory_gb = flags.memory_gb > 0                      ? flags.memory_gb
                           : judge::kind_of_device(device) == "cpu" ? kMemoryGb
                                                                    : kGpuMemoryGb;
  options.memory_bytes = static_cast<std::uint64_t>(memory_gb * 1e9);
  options.limits = {limit_of(flags.compile_timeout_s), limit_of(flags.load_timeout_s),
                    limit_of(flags.first_call_timeout_s), limit_of(flags.call_timeout_s),
                    limit_of(flags.timeout_s)};
  return options;
}

std::unique_ptr<sandbox::Launcher> make_launcher(const JudgingFlags& flags) {
  auto launcher = std::make_unique<sandbox::Launcher>(mode_from(flags.sandbox));
  if (flags.sandbox == "require" && !launcher->will_sandbox())
    throw UsageError(launcher->unavailable_reason());
  return launcher;
}

std::unique_ptr<build::Builder> make_builder(const JudgingFlags& flags,
                                             sandbox::Launcher& launcher) {
  build::Options build;
  build.cache_directory =
      flags.cache.empty() ? build::default_cache_directory() : std::filesystem::path(flags.cache);
  build.include_directory = problem::installation_root() / "include";
  build.time_limit = limit_of(flags.compile_timeout_s);
  return std::make_unique<build::Builder>(
      value_or_usage_error(build::Builder::create(std::move(build), launcher)));
}

Workshop::Workshop(const JudgingFlags& flags) {
  const auto root = problem::installation_root();
  const auto native_worker = companion("kernelbench-native-worker");
  if (::access(native_worker.c_str(), X_OK) != 0)
    throw UsageError(
        fmt::format("{} is missing: build or install kernelbench again", native_worker.string()));
  auto python =
      value_or_usage_error(worker::probe_python(worker::choose_python(flags.python, root)));
  launcher_ = make_launcher(flags);
  builder_ = make_builder(flags, *launcher_);
  environment_.emplace(judge::Environment{*launcher_, *builder_, std::move(python), root,
                                          native_worker, companion("libkernelbench-heap.so")});
}

}  // namespace kb::cli
