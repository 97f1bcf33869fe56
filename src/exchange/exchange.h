// Problem sets from and to other tools: folders of KernelBench files, and Hugging Face datasets
// with the columns code, level, name and problem_id.
//
// Nothing of what is imported is executed. Datasets are read by python/kernelbench_problems in a
// sandbox, which turns them into rows; what a row must be is decided here, and only here are files
// of the set written.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "problem/problem.h"
#include "sandbox/sandbox.h"

namespace kb::exchange {

/// A row as it comes from a dataset or a folder.
struct Row {
  std::string where;  ///< for messages: "level_1[3]", or a path
  std::string code;
  std::optional<std::int64_t> level;
  std::optional<std::int64_t> number;  ///< problem_id
  std::string name;                    ///< "19_ReLU", "19_ReLU.py" or "ReLU"
  std::string problem;                 ///< why it could not even be read; empty when it was
};

/// A row that will be a file of the set.
struct Accepted {
  problem::Id id;
  std::string file_name;  ///< "19_ReLU.py": letters, digits, `.`, `_`, `-`
  std::string code;
  std::string hash;
};

struct Import {
  std::vector<Accepted> accepted;       ///< in order of id
  std::vector<std::string> refused;     ///< one sentence a row, which names it
  std::vector<std::string> duplicates;  ///< "level1/3 and level1/7 are the same program"
};

/// Sorts rows into what can be a problem and what cannot. Ids count from 1.
Import accept(std::span<const Row> rows);

/// The rows of a folder with level1/, level2/ …, or, with `level`, of one whose files are that
/// level's. Error: one sentence (it cannot be read, it has no problem file).
std::expected<std::vector<Row>, std::string> rows_of_folder(const std::filesystem::path& folder,
                                                            std::optional<int> level);

/// True for a folder that rows_of_folder() is to read: it has Python files at the places of
/// problems.
bool is_problem_folder(const std::filesystem::path& folder, std::optional<int> level);

/// Where the helper runs.
struct Environment {
  sandbox::Launcher& launcher;
  std::string python;                       ///< the interpreter, absolute
  std::vector<std::string> python_folders;  ///< what a sandbox must show of it
  std::filesystem::path package_folder;     ///< holds kernelbench_problems/
};

/// The rows of a .parquet file, a folder of them, or one that save_to_disk wrote. Error: one
/// sentence.
std::expected<std::vector<Row>, std::string> rows_of_dataset(const Environment& environment,
                                                             const std::filesystem::path& source);

/// The rows of a dataset on the Hugging Face hub: its files are downloaded (outside of a sandbox,
/// as they are), and read like local ones. Error: one sentence.
std::expected<std::vector<Row>, std::string> rows_of_hub(const Environment& environment,
                                                         const std::string& name);

/// Reads the helper's lines. Error: one sentence.
std::expected<std::vector<Row>, std::string> parse_rows(std::string_view lines);

/// Writes the set as level<N>/<number>_<name>.py into `folder`, which must not exist, at once or
/// not at all. Error: one sentence.
std::expected<void, std::string> write_set(const Import& import,
                                           const std::filesystem::path& folder);

/// Writes problems as parquet: to the file `target` if it ends in .parquet, else as one file a
/// level into the folder `target`/data. Error: one sentence.
std::expected<void, std::string> write_dataset(const Environment& environment,
                                               std::span<const problem::Problem> problems,
                                               const std::filesystem::path& target);

}  // namespace kb::exchange
