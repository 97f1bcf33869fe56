#include "problem/id.h"

#include <fmt/format.h>

namespace kb::problem {

std::string Id::text() const {
  return fmt::format("level{}/{}", level, number);
}

std::optional<int> take_number(std::string_view& text) {
  // Nine digits always fit in an int.
  constexpr std::size_t kMaxDigits = 9;
  std::size_t digits = 0;
  int value = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    if (digits == kMaxDigits) return std::nullopt;
    value = value * 10 + (text[digits] - '0');
    ++digits;
  }
  if (digits == 0) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<Id> parse_id(std::string_view text) {
  const bool long_form = take_prefix(text, "level_");
  if (!long_form) take_prefix(text, "level");
  const auto level = take_number(text);
  if (!level || !take_prefix(text, long_form ? "_problem_" : "/")) return std::nullopt;
  const auto number = take_number(text);
  if (!number || !text.empty() || *level < 1 || *number < 1) return std::nullopt;
  return Id{*level, *number};
}

}  // namespace kb::problem
