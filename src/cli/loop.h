// What the commands that both ask a model and judge its kernels share: one command line for both.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/asking.h"
#include "cli/judging.h"
#include "cli/prompting.h"

namespace kb::cli {

/// The options of prompts, of a model and of judgements. --backend, --size and --precision are read
/// into `judging`, and mean both.
void add_loop_options(CLI::App& app, PromptingFlags& prompting, AskingFlags& asking,
                      JudgingFlags& judging);

/// Gives both sides the words that mean both, and returns the devices, of one kind, that judge such
/// kernels. UsageError where there is none, or a word means nothing: before an answer is paid for.
std::vector<std::string> share_words(PromptingFlags& prompting, JudgingFlags& judging);

}  // namespace kb::cli
