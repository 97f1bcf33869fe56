// What `eval` and `run` share: the options of a judgement, and everything that must exist before
// one.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "build/build.h"
#include "judge/evaluator.h"
#include "judge/options.h"
#include "sandbox/sandbox.h"

namespace kb::cli {

/// The command line's words for a judgement.
struct JudgingFlags {
  std::string size = "public";
  std::vector<std::string> set;
  std::string precision = "fp32";
  std::string device = "cpu";
  std::string rules = "own";
  std::string sandbox = "auto";
  std::string python;
  std::string cache;
  int trials = 5;
  int pairs = 0;
  unsigned threads = 0;
  bool no_stress = false;
  bool no_timing = false;
  double excessive_speedup = 10;
  double memory_gb = 8;
  double compile_timeout_s = 300, load_timeout_s = 60, first_call_timeout_s = 180,
         call_timeout_s = 10, timeout_s = 600;
};

void add_judging_options(CLI::App& app, JudgingFlags& flags);
/// UsageError for a word that means nothing.
judge::Options options_from(const JudgingFlags& flags);

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

/// The folder of the running program.
std::filesystem::path program_folder();

}  // namespace kb::cli
