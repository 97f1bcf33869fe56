#include "cli/profiling.h"

#include <fmt/format.h>

namespace kb::cli {

std::filesystem::path profile_folder(const JudgingFlags& flags, const std::string& keep,
                                     const problem::Problem& problem,
                                     const problem::Candidate* candidate) {
  if (!keep.empty()) return keep;
  constexpr std::size_t kDigits = 12;
  const auto cache =
      flags.cache.empty() ? build::default_cache_directory() : std::filesystem::path(flags.cache);
  const std::string of =
      candidate != nullptr ? candidate->hash.substr(0, kDigits) : std::string("reference");
  return cache / "profiles" / fmt::format("{}-{}", problem.hash.substr(0, kDigits), of);
}

}  // namespace kb::cli
