// What `eval` and `run` share: the options of a judgement, and everything that must exist before
// one.
#pragma once

#include <CLI/CLI.hpp>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "build/build.h"
#include "judge/evaluator.h"
#include "judge/options.h"
#include "problem/candidate.h"
#include "sandbox/sandbox.h"

namespace kb::cli {

/// The command line's words for a judgement.
struct JudgingFlags {
  std::string size = "public";
  std::vector<std::string> set;
  std::string precision = "fp32";
  std::string device = "auto";
  std::string backend;
  std::string rules = "own";
  std::string timer = "sealed";
  std::string sandbox = "auto";
  std::string python;
  std::string cache;
  int trials = 5;
  int pairs = 0;
  int calls = 0;
  unsigned threads = 0;
  bool no_stress = false;
  bool no_timing = false;
  double excessive_speedup = 10;
  double memory_gb = 0;  ///< 0: by the device
  double compile_timeout_s = 300, load_timeout_s = 60, first_call_timeout_s = 180,
         call_timeout_s = 10, timeout_s = 600;
};

void add_sandbox_option(CLI::App& app, std::string& sandbox);
void add_python_option(CLI::App& app, std::string& python);
/// The options that a compilation needs: --sandbox, --compile-timeout, --python, --cache.
void add_build_options(CLI::App& app, JudgingFlags& flags);
/// Those, and how a model is made and run: --size, --set, --precision, --device, --backend,
/// --threads, --memory, --timeout.
void add_model_options(CLI::App& app, JudgingFlags& flags);
/// Those and all others.
void add_judging_options(CLI::App& app, JudgingFlags& flags);
/// What --set means: `batch_size=16` → {"batch_size": 16}. UsageError for what has no name.
nlohmann::json assignments(const std::vector<std::string>& set);
/// UsageError for a word that means nothing, and for a timer that the device has not.
judge::Options options_from(const JudgingFlags& flags, const std::string& device);
/// The devices that --device lists; empty for `auto`. UsageError for a name that is none.
std::vector<std::string> devices_of(const JudgingFlags& flags);
/// Where a candidate in this language is judged: one of `devices`, or, without any, the first GPU
/// for what needs one, and for other Python where there is one, else the CPU. UsageError where that
/// cannot be.
std::string device_for(problem::Language language, const std::vector<std::string>& devices);
/// The candidate in the file, in the language that --backend names where it does. UsageError where
/// that is none, or none for such a file; as an error, what problem::load_candidate says.
std::expected<problem::Candidate, std::string> load_candidate(const JudgingFlags& flags,
                                                              const std::filesystem::path& path);
/// The verdict on a file that load_candidate refuses for `why`, as to_json makes it: a program that
/// asks for JSON hands in what others wrote. A file that cannot even be read is the caller's own
/// mistake: UsageError.
nlohmann::json refusal_json(const problem::Problem& problem, const problem::Candidate& candidate,
                            const std::string& why, const judge::Options& options);

/// UsageError where --sandbox cannot be had.
std::unique_ptr<sandbox::Launcher> make_launcher(const JudgingFlags& flags);
/// UsageError where there is no compiler or no cache.
std::unique_ptr<build::Builder> make_builder(const JudgingFlags& flags,
                                             sandbox::Launcher& launcher);

/// The environment of evaluations, made from flags. UsageError where something essential is
/// missing.
class Workshop {
 public:
  explicit Workshop(const JudgingFlags& flags);
  const judge::Environment& environment() const { return *environment_; }
  sandbox::Launcher& launcher() { return *launcher_; }

 private:
  std::unique_ptr<sandbox::Launcher> launcher_;
  std::unique_ptr<build::Builder> builder_;
  std::optional<judge::Environment> environment_;
};

/// A file that comes with the running program, wherever it is installed; need not exist.
std::filesystem::path companion(const std::string& name);

}  // namespace kb::cli
