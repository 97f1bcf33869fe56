// What the commands that write prompts share: the options of a prompt.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "prompt/prompt.h"

namespace kb::cli {

struct PromptingFlags {
  std::string backend = "cuda", precision = "fp32", shots = "one", gpu = "none", size = "public";
  std::string prompts;
  bool with_hardware = false;
};

void add_prompting_options(CLI::App& app, PromptingFlags& flags);

/// UsageError for a word that means nothing.
prompt::Request request_from(const PromptingFlags& flags);

}  // namespace kb::cli
