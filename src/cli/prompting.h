// What the commands that write prompts share: the options of a prompt.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "prompt/prompt.h"

namespace kb::cli {

struct PromptingFlags {
  std::string backend = "cuda", precision = "fp32", shots = "one", gpu = "none", size = "public";
  std::string prompts;
  bool with_hardware = false;
};

/// What --backend may be, for its help.
inline constexpr const char* kBackends =
    "cpp, cuda_cpp, hip_cpp, cuda, triton, cute, tilelang, thunderkittens, cupy, hip, helion, "
    "cuda_tile, or one of your --prompts file";

/// --shots, --gpu, --with-hardware, --prompts.
void add_style_options(CLI::App& app, PromptingFlags& flags);
/// Those, and what a judgement has too: --backend, --precision, --size.
void add_prompting_options(CLI::App& app, PromptingFlags& flags);

/// The texts, with those of --prompts laid over them. UsageError for a file that is none.
prompt::Library load_library(const PromptingFlags& flags);
/// UsageError when there is none of that name.
const prompt::Backend& backend_named(const prompt::Library& library, const std::string& name);

/// All of a request that changes a prompt.
nlohmann::json configuration_of(const prompt::Request& request);

/// UsageError for a word that means nothing.
prompt::Request request_from(const PromptingFlags& flags);

}  // namespace kb::cli
