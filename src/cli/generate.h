// kernelbench generate, for the commands that begin with it.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/asking.h"
#include "cli/prompting.h"

namespace kb::cli {

struct GenerateFlags {
  std::string folder;
  std::vector<int> levels;
  std::string ids;
  std::string problems;  ///< the set, as problem::find_set takes it
  std::string subset;    ///< of that set
  int draw = 0;
  std::uint64_t draw_seed = 0;
  int samples = 1;
  bool dry_run = false;
  PromptingFlags prompting;
  AskingFlags asking;
};

/// The folder, --level, --ids, --problems, --subset, --draw, --draw-seed, --samples.
void add_question_options(CLI::App& app, GenerateFlags& flags);

/// How the asking ended.
struct Asked {
  bool finished = true;  ///< every question has its answer
  bool stopped = false;  ///< by Ctrl-C, or because no question could be answered
};
/// Asks what has not been answered yet. UsageError for bad input.
Asked generate(const GenerateFlags& flags);

}  // namespace kb::cli
