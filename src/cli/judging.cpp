#include "cli/judging.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/failure.h"
#include "problem/problem.h"

namespace kb::cli {
namespace {

judge::milliseconds limit_of(double seconds) {
  return judge::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

sandbox::Mode mode_from(const std::string& word) {
  if (word == "require") return sandbox::Mode::require;
  if (word == "none") return sandbox::Mode::none;
  return sandbox::Mode::automatic;
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

std::filesystem::path program_folder() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path();
}

void add_judging_options(CLI::App& app, JudgingFlags& flags) {
  const auto positive = CLI::PositiveNumber;
  app.add_option("--size", flags.size,
                 "the problem's size: public, or a key of its SIZES such as small")
      ->capture_default_str();
  app.add_option("--set", flags.set,
                 "replace a constant of the problem, after --size: NAME=VALUE (repeatable)");
  app.add_option("--precision", flags.precision, "of inputs and weights")
      ->check(CLI::IsMember({"fp32", "fp16", "bf16"}))
      ->capture_default_str();
  app.add_option("--device", flags.device, "cpu")
      ->check(CLI::IsMember({"cpu"}))
      ->capture_default_str();
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
  app.add_option("--pairs", flags.pairs, "timed pairs of turns; default by the size, 30 to 60")
      ->check(CLI::Range(1, 100000));
  app.add_option("--threads", flags.threads,
                 "CPU threads of the model, on both sides; default every CPU")
      ->check(CLI::Range(1, 4096));
  app.add_option("--excessive-speedup", flags.excessive_speedup, "flag a larger speedup for review")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--sandbox", flags.sandbox, "auto, require or none")
      ->check(CLI::IsMember({"auto", "require", "none"}))
      ->capture_default_str();
  app.add_option("--memory", flags.memory_gb,
                 "GB that a worker may allocate, beside inputs and outputs")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--compile-timeout", flags.compile_timeout_s, "seconds")
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
  app.add_option("--timeout", flags.timeout_s, "seconds for one evaluation, compilation aside")
      ->check(positive)
      ->capture_default_str();
  app.add_option(
      "--python", flags.python,
      "the Python with PyTorch >= 2.9; default: an active virtual environment, .venv, python3");
  app.add_option("--cache", flags.cache, "folder of the build cache; default ~/.cache/kernelbench");
}

judge::Options options_from(const JudgingFlags& flags) {
  judge::Options options;
  options.device = flags.device;
  options.precision = flags.precision;
  options.size = flags.size;
  for (const auto& assignment : flags.set) add_assignment(options.set, assignment);
  options.rules = flags.rules == "kernelbench" ? judge::Rules::kernelbench : judge::Rules::own;
  options.correctness_trials = flags.trials;
  options.stress = !flags.no_stress;
  options.timing = !flags.no_timing;
  options.pairs = flags.pairs;
  options.threads = flags.threads;
  options.excessive_speedup = flags.excessive_speedup;
  options.memory_bytes = static_cast<std::uint64_t>(flags.memory_gb * 1e9);
  options.limits = {limit_of(flags.compile_timeout_s), limit_of(flags.load_timeout_s),
                    limit_of(flags.first_call_timeout_s), limit_of(flags.call_timeout_s),
                    limit_of(flags.timeout_s)};
  return options;
}

Workshop::Workshop(const JudgingFlags& flags) {
  const auto root = problem::installation_root();
  const auto native_worker = program_folder() / "kernelbench-native-worker";
  if (::access(native_worker.c_str(), X_OK) != 0)
    throw UsageError(
        fmt::format("{} is missing: build or install kernelbench again", native_worker.string()));
  auto python =
      value_or_usage_error(worker::probe_python(worker::choose_python(flags.python, root)));
  launcher_ = std::make_unique<sandbox::Launcher>(mode_from(flags.sandbox));
  if (flags.sandbox == "require" && !launcher_->will_sandbox())
    throw UsageError(launcher_->unavailable_reason());
  build::Options build;
  build.cache_directory =
      flags.cache.empty() ? build::default_cache_directory() : std::filesystem::path(flags.cache);
  build.include_directory = root / "include";
  build.time_limit = limit_of(flags.compile_timeout_s);
  builder_ = std::make_unique<build::Builder>(
      value_or_usage_error(build::Builder::create(std::move(build), *launcher_)));
  environment_.emplace(
      judge::Environment{*launcher_, *builder_, std::move(python), root, native_worker});
}

}  // namespace kb::cli
