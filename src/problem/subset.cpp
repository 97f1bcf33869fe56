#include "problem/subset.h"

#include <fmt/format.h>

#include <algorithm>

#include "problem/set.h"
#include "problem/text_file.h"
#include "problem/toml_text.h"

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
  const auto table = parse_toml(*text);
  if (!table) return bad(fmt::format("line {}: {}", table.error().line, table.error().what));
  const auto* problems = member_of(*table, "problem");
  if (problems == nullptr || !problems->is_array() || problems->as_array().empty())
    return bad("there is no [[problem]] in it");
  std::vector<SubsetEntry> entries;
  for (const auto& entry : problems->as_array()) {
    const auto* id = string_in(member_of(entry, "id"));
    const auto parsed = id != nullptr ? parse_id(*id) : std::nullopt;
    if (!parsed)
      return bad(
          fmt::format("line {}: a problem needs an id such as \"level1/19\"", line_of(entry)));
    const auto* reason = string_in(member_of(entry, "reason"));
    entries.push_back({*parsed, reason != nullptr ? printable(*reason) : std::string()});
  }
  std::ranges::sort(entries, {}, &SubsetEntry::id);
  const auto twin = std::ranges::adjacent_find(entries, {}, &SubsetEntry::id);
  if (twin != entries.end()) return bad(fmt::format("{} occurs twice", twin->id.text()));
  return entries;
}

}  // namespace kb::problem
