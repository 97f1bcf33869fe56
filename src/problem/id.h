// What a problem is called: its level and its number in the level, both counted from 1 as in
// KernelBench's file names.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace kb::problem {

/// `level1/19`; both 1-based.
struct Id {
  int level = 0;
  int number = 0;
  std::string text() const;  ///< "level1/19"
  auto operator<=>(const Id&) const = default;
};

/// Accepts "level1/19", "1/19", "level_1_problem_19"; null for anything else.
std::optional<Id> parse_id(std::string_view text);

/// Takes a decimal number of at most nine digits off the front of `text`; null, and `text` as it
/// was, when there is none.
std::optional<int> take_number(std::string_view& text);

/// Takes `prefix` off the front of `text`; false, and `text` as it was, when it is not there.
bool take_prefix(std::string_view& text, std::string_view prefix);

}  // namespace kb::problem
