#include "prompt/template.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace kb::prompt {
namespace {

constexpr std::string_view kOpen = "{{";
constexpr std::string_view kClose = "}}";

bool starts_name(char c) {
  return c >= 'a' && c <= 'z';
}
bool in_name(char c) {
  return starts_name(c) || (c >= '0' && c <= '9') || c == '_';
}

/// What stands outside of names, with \{{ resolved.
void append_text(std::string& result, std::string_view text) {
  for (std::size_t at = text.find("\\{{"); at != std::string_view::npos; at = text.find("\\{{")) {
    result.append(text.substr(0, at)).append(kOpen);
    text.remove_prefix(at + 1 + kOpen.size());
  }
  result.append(text);
}

}  // namespace

std::vector<Placeholder> placeholders_of(std::string_view text) {
  std::vector<Placeholder> found;
  std::size_t line = 0, counted_to = 0;
  for (std::size_t at = text.find(kOpen); at != std::string_view::npos; at = text.find(kOpen, at)) {
    if (at > 0 && text[at - 1] == '\\') {
      at += kOpen.size();
      continue;
    }
    std::size_t end = at + kOpen.size();
    if (end < text.size() && starts_name(text[end]))
      while (end < text.size() && in_name(text[end])) ++end;
    const std::string_view name = text.substr(at + kOpen.size(), end - at - kOpen.size());
    if (name.empty() || !text.substr(end).starts_with(kClose)) {
      ++at;
      continue;
    }
    line += static_cast<std::size_t>(
        std::ranges::count(text.substr(counted_to, at - counted_to), '\n'));
    counted_to = at;
    found.push_back({name, at, end + kClose.size(), line});
    at = end + kClose.size();
  }
  return found;
}

std::string expand(std::string_view text, const Names& names) {
  std::string result;
  std::size_t kept_to = 0;
  for (const auto& place : placeholders_of(text)) {
    if (place.begin < kept_to) continue;
    const auto value = names.find(place.name);
    if (value == names.end())
      throw std::logic_error(fmt::format("no value for {{{{{}}}}} in a prompt's text", place.name));
    append_text(result, text.substr(kept_to, place.begin - kept_to));
    kept_to = place.end;
    const bool alone = (place.begin == 0 || text[place.begin - 1] == '\n') &&
                       (place.end == text.size() || text[place.end] == '\n');
    if (!value->second.empty() || !alone) {
      result += value->second;
      continue;
    }
    for (int line_feeds = 0; line_feeds < 2 && kept_to < text.size() && text[kept_to] == '\n';
         ++line_feeds)
      ++kept_to;
  }
  append_text(result, text.substr(std::min(kept_to, text.size())));
  return result;
}

}  // namespace kb::prompt
