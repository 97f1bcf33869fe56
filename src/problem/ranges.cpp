#include "problem/ranges.h"

#include <fmt/format.h>

#include <set>

#include "problem/id.h"
#include "problem/text_file.h"

namespace kb::problem {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::expected<std::vector<int>, std::string> parse_ranges(std::string_view text) {
  // Bounds the memory that a mistyped range can take; no set has so many problems.
  constexpr int kLargest = 99'999;
  std::set<int> numbers;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = trim(rest.substr(0, comma));
    std::string_view tail = part;
    const auto first = take_number(tail);
    tail = trim(tail);
    std::optional<int> last = first;
    if (take_prefix(tail, "-")) {
      tail = trim(tail);
      last = take_number(tail);
    }
    if (!first || !last || !tail.empty()) {
      return std::unexpected(
          fmt::format("'{}' is not a list of numbers; write it like 1-10,19", printable(text)));
    }
    if (*first < 1 || *last > kLargest) {
      return std::unexpected(
          fmt::format("'{}' is out of range; numbers go from 1 to {}", printable(part), kLargest));
    }
    if (*first > *last) {
      return std::unexpected(
          fmt::format("'{}' runs backwards; write {}-{}", printable(part), *last, *first));
    }
    for (int number = *first; number <= *last; ++number) numbers.insert(number);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return std::vector<int>(numbers.begin(), numbers.end());
}

std::string format_ranges(const std::vector<int>& numbers) {
  constexpr int kMaxParts = 30;
  std::string result;
  int parts = 0;
  for (std::size_t i = 0; i < numbers.size();) {
    if (parts == kMaxParts) return result + ", …";
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!result.empty()) result += ", ";
    // Two in a row read better apart.
    if (last - i < 2) {
      result += fmt::format("{}", numbers[i]);
      ++i;
    } else {
      result += fmt::format("{}-{}", numbers[i], numbers[last]);
      i = last + 1;
    }
    ++parts;
  }
  return result;
}

}  // namespace kb::problem
