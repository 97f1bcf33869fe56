// {{name}} in a text, and nothing else: no conditions, no loops, no second expansion of what was
// put in.
//
// A name is [a-z][a-z0-9_]*. Two braces that no name and two braces follow are text, as in C++'s
// `{{1, 2}}`; \{{ is text always. A line that is nothing but a name is left out, with the blank
// line behind it, when the name stands for nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kb::prompt {

using Names = std::map<std::string, std::string, std::less<>>;

struct Placeholder {
  std::string_view name;           ///< a part of the text
  std::size_t begin = 0, end = 0;  ///< of the whole, braces included
  std::size_t line = 0;            ///< 0-based
};

/// In order. Linear.
std::vector<Placeholder> placeholders_of(std::string_view text);

/// The text with each name replaced by what it stands for. Every name in it must be in `names`
/// (texts are checked when they are read): std::logic_error otherwise.
std::string expand(std::string_view text, const Names& names);

}  // namespace kb::prompt
