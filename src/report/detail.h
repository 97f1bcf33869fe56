// What a run's folder knows of a sample beside its score: the whole result, and sources.
#pragma once

#include <expected>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "score/evaluation.h"

namespace kb::report {

/// A source file of a sample. A stranger's, like everything here.
struct Source {
  std::string file;  ///< its name, without the folder
  std::string text;
};

struct Detail {
  nlohmann::json result;         ///< the object that `eval --json` prints; null: not known
  std::string finished_at;       ///< ISO 8601, UTC; empty: not known
  std::optional<Source> source;  ///< the source that was judged
  std::string source_note;       ///< a sentence: why there is none, or what is doubtful about it
  std::vector<Source> earlier;   ///< of the turns before the last, the first turn first
};

/// By problem and sample.
using Details = std::map<std::pair<std::string, int>, Detail>;

/// The details of `evaluations`. `run` is what score::load_run has read: results are there only
/// where it has a kernelbench.db. Sources are sample files of the folder whose digest is the one
/// that the result names; earlier ones are called level_1_problem_19_sample_0_turn_1.py and so on.
/// A source that cannot be shown is no error. Error: one sentence (a damaged database).
std::expected<Details, std::string> load_details(const std::filesystem::path& run,
                                                 const std::vector<score::Evaluation>& evaluations);

}  // namespace kb::report
