#include "problem/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "problem/ranges.h"
#include "problem/text_file.h"

namespace kb::problem {
namespace {

namespace fs = std::filesystem;

// The paths directly in a folder. Error: the system's words.
std::expected<std::vector<fs::path>, std::string> list(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    paths.push_back(it->path());
  }
  if (error)
    return std::unexpected(
        fmt::format("{} cannot be read: {}", printable(folder.string()), error.message()));
  return paths;
}

}  // namespace

std::expected<Catalog, std::string> Catalog::open(const fs::path& root) {
  std::error_code error;
  const std::string shown = printable(root.string());
  if (!fs::is_directory(root, error)) {
    return std::unexpected(
        fmt::format("the problem set {} is not a folder; set KERNELBENCH_HOME to the folder that "
                    "holds problems/",
                    shown));
  }
  const auto folders = list(root);
  if (!folders) return std::unexpected(folders.error());

  Catalog catalog;
  catalog.root_ = root;
  for (const fs::path& folder : *folders) {
    const auto level = parse_level_folder(folder);
    if (!level || !fs::is_directory(folder, error)) continue;
    const auto files = list(folder);
    if (!files) return std::unexpected(files.error());
    for (const fs::path& file : *files) {
      const auto named = parse_problem_file_name(file);
      if (!named || fs::is_directory(file, error)) continue;
      catalog.entries_.push_back({Id{*level, named->number}, named->name, file});
    }
  }
  std::sort(catalog.entries_.begin(), catalog.entries_.end(), [](const Entry& a, const Entry& b) {
    return a.id != b.id ? a.id < b.id : a.path < b.path;
  });
  const auto twin = std::adjacent_find(catalog.entries_.begin(), catalog.entries_.end(),
                                       [](const Entry& a, const Entry& b) { return a.id == b.id; });
  if (twin != catalog.entries_.end()) {
    return std::unexpected(fmt::format("{} and {} are both {}; rename one of them",
                                       printable(twin->path.string()),
                                       printable(std::next(twin)->path.string()), twin->id.text()));
  }
  if (catalog.entries_.empty()) {
    return std::unexpected(
        fmt::format("{} holds no problems; they are files like level1/19_ReLU.py in it", shown));
  }
  return catalog;
}

std::expected<Problem, std::string> Catalog::load(Id id) const {
  const auto entry = std::lower_bound(entries_.begin(), entries_.end(), id,
                                      [](const Entry& a, const Id& b) { return a.id < b; });
  if (entry == entries_.end() || entry->id != id) {
    std::vector<int> levels;
    std::vector<int> numbers;
    for (const Entry& each : entries_) {
      if (levels.empty() || levels.back() != each.id.level) levels.push_back(each.id.level);
      if (each.id.level == id.level) numbers.push_back(each.id.number);
    }
    if (numbers.empty()) {
      return std::unexpected(
          fmt::format("there is no level {}; the levels are {}", id.level, format_ranges(levels)));
    }
    return std::unexpected(fmt::format("level{} has no problem {}; its ids are {}", id.level,
                                       id.number, format_ranges(numbers)));
  }
  auto problem = load_file(entry->path);
  // A set may lie behind a link of another name: what the catalog says of a file holds.
  if (problem) {
    problem->id = id;
    problem->label = id.text();
    problem->name = entry->name;
  }
  return problem;
}

}  // namespace kb::problem
