// One problem file: a PyTorch module `Model`, `get_inputs()` and `get_init_inputs()`, exactly as
// KernelBench writes them.
#pragma once

#include <expected>
#include <filesystem>
#include <optional>
#include <string>

#include "problem/id.h"

namespace kb::problem {

struct Problem {
  std::optional<Id> id;  ///< none for a file outside a set
  std::string name;      ///< "ReLU": the file name without number and suffix, underscores to spaces
  std::filesystem::path path;  ///< absolute
  std::string source;          ///< the file's text
  std::string summary;         ///< first line of the module docstring, or empty
  std::string
      altered;  ///< the file's ALTERED: how it differs from the public problem of its id, or empty
  std::string family;  ///< family_of(name, source)
  std::string hash;    ///< code_hash(source)
  std::string label;   ///< "level1/19", or the path as given
};

/// `19_ReLU.py` taken apart; null when a file is not named like a problem of a set.
struct ProblemFileName {
  int number = 0;
  std::string name;  ///< underscores to spaces
};
std::optional<ProblemFileName> parse_problem_file_name(const std::filesystem::path& file);

/// The number of a folder `level3`; null for any other name.
std::optional<int> parse_level_folder(const std::filesystem::path& folder);

/// Loads one file (no id unless its path ends in level<N>/<number>_….py). Error: one sentence (it
/// cannot be read; it surely binds no `Model` or no `get_inputs`). Whether it is valid Python is
/// found out by the worker that runs it.
std::expected<Problem, std::string> load_file(const std::filesystem::path& path);

}  // namespace kb::problem
