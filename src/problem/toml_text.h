// TOML with the line of everything in it, over the part of toml11 that its versions from 3.7 on
// share.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <toml.hpp>
#include <vector>

namespace kb::problem {

/// Why a text is not TOML, and where.
struct TomlFault {
  std::size_t line = 1;
  std::string what;  ///< one line, printable
};

/// A text as TOML: a table.
std::expected<toml::value, TomlFault> parse_toml(std::string_view text);

/// The line that a value, or a table's heading, begins on, from 1. A table without a heading of its
/// own has that of the first table in it.
std::size_t line_of(const toml::value& value);

/// A table's key and value.
struct TomlEntry {
  std::string key;
  const toml::value* value;
  std::size_t line;
};
/// The entries of a table in the order of their lines (toml11 keeps none), for as long as `table`
/// lives.
std::vector<TomlEntry> entries_of(const toml::value& table);

/// The member `name`; null when there is none, and when `value` is no table.
const toml::value* member_of(const toml::value& value, const std::string& name);

/// The text of a string; null for a null and for a value that is no string.
const std::string* string_in(const toml::value* value);

}  // namespace kb::problem
