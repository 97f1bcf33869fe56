#include "problem/toml_text.h"

#include <algorithm>
#include <sstream>
#include <tuple>

#include "problem/id.h"
#include "problem/text_file.h"

namespace kb::problem {
namespace {

// Templates, so that a member which a version lacks is no error.
template <class Location>
std::size_t first_line(const Location& location) {
  if constexpr (requires { location.line(); })
    return location.line();
  else
    return location.first_line_number();
}

template <class String>
const std::string* text_in(const String& string) {
  if constexpr (requires { string.str; })
    return &string.str;
  else
    return &string;
}

// toml11's words are "[error] what", then lines that show the place as "  2 | the line".
TomlFault fault_in(std::string_view words) {
  TomlFault fault;
  std::string_view first = words.substr(0, words.find('\n'));
  take_prefix(first, "[error] ");
  fault.what = printable(first);
  while (!words.empty()) {
    const std::size_t end = std::min(words.find('\n'), words.size());
    std::string_view line = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const auto number = take_number(line);
    const std::size_t bar = line.find_first_not_of(' ');
    if (!number || bar == std::string_view::npos || line[bar] != '|') continue;
    fault.line = static_cast<std::size_t>(*number);
    break;
  }
  return fault;
}

}  // namespace

std::expected<toml::value, TomlFault> parse_toml(std::string_view text) {
  std::istringstream stream{std::string(text)};
  try {
    return toml::parse(stream, "text");
  } catch (const std::exception& error) {
    return std::unexpected(fault_in(error.what()));
  }
}

std::size_t line_of(const toml::value& value) {
  return first_line(value.location());
}

std::vector<TomlEntry> entries_of(const toml::value& table) {
  std::vector<TomlEntry> entries;
  for (const auto& [key, value] : table.as_table())
    entries.push_back({key, &value, line_of(value)});
  std::ranges::sort(entries, {}, [](const auto& entry) { return std::tie(entry.line, entry.key); });
  return entries;
}

const toml::value* member_of(const toml::value& value, const std::string& name) {
  if (!value.is_table()) return nullptr;
  const auto& table = value.as_table();
  const auto found = table.find(name);
  return found != table.end() ? &found->second : nullptr;
}

const std::string* string_in(const toml::value* value) {
  return value != nullptr && value->is_string() ? text_in(value->as_string()) : nullptr;
}

}  // namespace kb::problem
