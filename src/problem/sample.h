// The samples of a run: a folder of files under KernelBench's names.
#pragma once

#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "problem/id.h"

namespace kb::problem {

/// KernelBench's sample names: level_1_problem_19_sample_0_kernel.py (.cpp, .cc, .cu, .hip). Levels
/// and problems count from 1, samples from 0.
struct Sample {
  Id id;
  int sample = 0;
  std::filesystem::path path;
};
std::optional<Sample> parse_sample_name(const std::filesystem::path& path);

/// Every sample file directly in `folder`, ordered by id, then number. Error: one sentence (no such
/// folder, no samples in it, two files for one sample).
std::expected<std::vector<Sample>, std::string> find_samples(const std::filesystem::path& folder);

}  // namespace kb::problem
