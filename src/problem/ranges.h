// Sets of numbers as people write them: 1-10,19.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace kb::problem {

/// "1-10,19" → the set, in order. Numbers start at 1 and end at 99,999. Error: one sentence.
std::expected<std::vector<int>, std::string> parse_ranges(std::string_view text);

/// The opposite, for a message: "1, 2, 4-10, 19". Cut to about 30 parts with "…". `numbers` are in
/// order.
std::string format_ranges(const std::vector<int>& numbers);

}  // namespace kb::problem
