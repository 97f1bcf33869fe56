// The texts of prompts/kernelbench.toml and of a user's file, read and checked: what a Library
// holds.
#pragma once

#include <expected>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "prompt/prompt.h"
#include "prompt/template.h"

namespace kb::prompt {

/// A problem and a kernel that solves it.
struct Example {
  problem::Problem problem;
  std::string kernel;
};

struct BackendTexts {
  std::string title, label, interface, practice;
  std::vector<Example> examples;
};

/// Texts by the name that they have in a file, without white space at their ends.
struct Library::Texts {
  Names text, precision, terms, card_practice, verdict, flag;
  std::vector<Backend> backends;
  std::map<std::string, BackendTexts, std::less<>> of_backend;
  std::string kernel_header;  ///< include/kernelbench/kernel.h

  /// Lays the file over what is there. Error: one sentence, with the line.
  std::expected<void, std::string> read(const std::filesystem::path& file,
                                        const std::filesystem::path& examples_root,
                                        const std::filesystem::path& problems_root);
};

}  // namespace kb::prompt
