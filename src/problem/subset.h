// Named subsets of a problem set: `NAME.toml` in the set's folder.
#pragma once

#include <expected>
#include <filesystem>
#include <string>
#include <vector>

#include "problem/id.h"

namespace kb::problem {

struct SubsetEntry {
  Id id;
  std::string reason;  ///< why it is in the subset
};

/// The entries of `root`/NAME.toml, in order of id: an array `problem` of tables with `id` and
/// `reason`. Error: one sentence (no such subset, not TOML, an entry without an id, an id that
/// occurs twice).
std::expected<std::vector<SubsetEntry>, std::string> load_subset(const std::filesystem::path& root,
                                                                 const std::string& name);

}  // namespace kb::problem
