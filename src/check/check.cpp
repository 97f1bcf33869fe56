#include "check/check.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "problem/python_tokens.h"

namespace kb::check {
namespace {

bool is_identifier(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Behind an ordinary literal's end, or at the end of its line if it has none (an apostrophe in an
// #error, say).
std::size_t skip_literal(std::string_view text, std::size_t at) {
  const char quote = text[at++];
  while (at < text.size() && text[at] != quote && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
  return std::min(text.size(), at < text.size() && text[at] == quote ? at + 1 : at);
}

// Behind a raw string's end; `at` is its opening quote.
std::size_t skip_raw_string(std::string_view text, std::size_t at) {
  constexpr std::size_t kMaxDelimiter = 16;
  const std::size_t open = text.find_first_of("( \\)\"\n", at + 1);
  if (open == std::string_view::npos || text[open] != '(' || open - at - 1 > kMaxDelimiter) {
    return skip_literal(text, at);
  }
  const std::string close = ")" + std::string(text.substr(at + 1, open - at - 1)) + "\"";
  const std::size_t end = text.find(close, open);
  return end == std::string_view::npos ? text.size() : end + close.size();
}

bool has_identifier(std::string_view text, std::string_view name) {
  std::size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (text.substr(at).starts_with("//")) {
      at = std::min(text.size(), text.find('\n', at));
    } else if (text.substr(at).starts_with("/*")) {
      const std::size_t end = text.find("*/", at + 2);
      at = end == std::string_view::npos ? text.size() : end + 2;
    } else if (c == '"' || c == '\'') {
      at = skip_literal(text, at);
    } else if (is_identifier(c)) {
      const std::size_t begin = at;
      const bool number = c >= '0' && c <= '9';
      // In a number, ' separates digits.
      while (at < text.size() && (is_identifier(text[at]) || (number && text[at] == '\''))) ++at;
      const std::string_view word = text.substr(begin, at - begin);
      if (word == name) return true;
      if (at < text.size() && text[at] == '"' && !number && word.size() <= 3 &&
          word.back() == 'R') {
        at = skip_raw_string(text, at);
      }
    } else {
      ++at;
    }
  }
  return false;
}

}  // namespace

std::optional<std::string> has_entry_point(const problem::Candidate& candidate) {
  if (candidate.backend == problem::Backend::python) {
    if (problem::may_bind(candidate.source, "ModelNew")) return std::nullopt;
    return "the candidate defines no ModelNew; define it as a class ModelNew(nn.Module) that "
           "replaces the problem's Model";
  }
  // A name pasted together by the preprocessor is not seen by this scan.
  if (has_identifier(candidate.source, "kb_run") ||
      candidate.source.find("##") != std::string::npos)
    return std::nullopt;
  return "the candidate defines no kb_run; export it as kernelbench/kernel.h declares it";
}

}  // namespace kb::check
