// A run to be scored: a folder that `run` has judged, or one of KernelBench's.
#pragma once

#include <expected>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "score/evaluation.h"

namespace kb::score {

struct Run {
  std::string name;  ///< the folder's last part
  std::vector<Evaluation> evaluations;
  /// What KernelBench's own pass_at_k_results.json says, where there is one.
  std::map<int, double> reported_pass_at_k;
  std::vector<std::string> notes;  ///< a sentence each
};

/// `path` is a folder with kernelbench.db or, without that, with KernelBench's eval_results.json
/// (or eval_results_level1.json and the like); or one of these files. `level`: of the problems of
/// an eval_results.json where neither the file nor the folder says it (its name, its sample files,
/// its generation_config.yaml); 0: unknown. Error: one sentence (nothing there, no result, damaged,
/// foreign).
std::expected<Run, std::string> load_run(const std::filesystem::path& path, int level);

/// The text of a file of results. Error: one sentence (missing, a folder, over 512 MiB …).
std::expected<std::string, std::string> read_results_file(const std::filesystem::path& path);

}  // namespace kb::score
