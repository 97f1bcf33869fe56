// What `profile` and `eval --profile` share: where reports are kept, and how a profiler is made.
#pragma once

#include <filesystem>
#include <string>

#include "cli/judging.h"
#include "profile/profiler.h"

namespace kb::cli {

/// The folder of --keep, or one in the build cache for this problem and candidate (which may be
/// null): an earlier profile there is overwritten.
std::filesystem::path profile_folder(const JudgingFlags& flags, const std::string& keep,
                                     const problem::Problem& problem,
                                     const problem::Candidate* candidate);

}  // namespace kb::cli
