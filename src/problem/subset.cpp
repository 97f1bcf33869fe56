#include "problem/subset.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "problem/set.h"
#include "problem/text_file.h"

namespace kb::problem {

std::expected<std::vector<SubsetEntry>, std::string> load_subset(const std::filesystem::path& root,
                                                                 const std::string& name) {
  const auto path = root / (name + ".toml");
  std::error_code error;
  // A subset's name is a file's name, and no path.
  if (!is_set_name(name) || !std::filesystem::exists(path, error))
    return std::unexpected(fmt::format("{} has no subset '{}': it would be a file {}.toml there",
                                       printable(root.string()), printable(name), printable(name)));
  const auto bad = [&](std::string_view why) {
    return std::unexpected(fmt::format("{}: {}", printable(path.string()), why));
  };
  const auto text = read_text_file(path);
  if (!text) return std::unexpected(text.error());
  toml::table table;
  try {
    table = toml::parse(*text);
  } catch (const toml::parse_error& failure) {
    return bad(
        fmt::format("line {}: {}", failure.source().begin.line, printable(failure.description())));
  }
  const auto* problems = table["problem"].as_array();
  if (problems == nullptr || problems->empty()) return bad("there is no [[problem]] in it");
  std::vector<SubsetEntry> entries;
  for (const auto& node : *problems) {
    const auto* entry = node.as_table();
    const auto id = entry != nullptr ? (*entry)["id"].value<std::string>() : std::nullopt;
    const auto parsed = id ? parse_id(*id) : std::nullopt;
    if (!parsed)
      return bad(fmt::format("line {}: a problem needs an id such as \"level1/19\"",
                             node.source().begin.line));
    entries.push_back({*parsed, printable((*entry)["reason"].value_or(std::string()))});
  }
  std::ranges::sort(entries, {}, &SubsetEntry::id);
  const auto twin = std::ranges::adjacent_find(entries, {}, &SubsetEntry::id);
  if (twin != entries.end()) return bad(fmt::format("{} occurs twice", twin->id.text()));
  return entries;
}

}  // namespace kb::problem
