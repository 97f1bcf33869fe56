#include "problem/native_source.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace kb::problem {
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

// Calls visit(word, before, behind) for each identifier and number: `before` is the last character
// in front that is no space (0: none), `behind` is the text that follows. True as soon as `visit`
// says so.
template <class Visit>
bool any_word(std::string_view text, Visit visit) {
  std::size_t at = 0;
  char before = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (text.substr(at).starts_with("//")) {
      at = std::min(text.size(), text.find('\n', at));
    } else if (text.substr(at).starts_with("/*")) {
      const std::size_t end = text.find("*/", at + 2);
      at = end == std::string_view::npos ? text.size() : end + 2;
    } else if (c == '"' || c == '\'') {
      at = skip_literal(text, at);
      before = c;
    } else if (is_identifier(c)) {
      const std::size_t begin = at;
      const bool number = c >= '0' && c <= '9';
      // In a number, ' separates digits.
      while (at < text.size() && (is_identifier(text[at]) || (number && text[at] == '\''))) ++at;
      const std::string_view word = text.substr(begin, at - begin);
      if (visit(word, before, text.substr(at))) return true;
      before = word.back();
      if (at < text.size() && text[at] == '"' && !number && word.size() <= 3 &&
          word.back() == 'R') {
        at = skip_raw_string(text, at);
      }
    } else {
      if (std::isspace(static_cast<unsigned char>(c)) == 0) before = c;
      ++at;
    }
  }
  return false;
}

}  // namespace

bool has_identifier(std::string_view source, std::string_view name) {
  return any_word(source,
                  [&](std::string_view word, char, std::string_view) { return word == name; });
}

bool includes_tvm_ffi(std::string_view source) {
  return any_word(source, [](std::string_view word, char before, std::string_view behind) {
    if (word != "include" || before != '#') return false;
    const std::size_t name = std::min(behind.find_first_not_of(" \t"), behind.size());
    behind.remove_prefix(name);
    return behind.starts_with("<tvm/ffi/") || behind.starts_with("\"tvm/ffi/");
  });
}

bool is_tvm_ffi_function(std::string_view source) {
  return includes_tvm_ffi(source) && !has_identifier(source, "kb_run");
}

bool exports_tvm_ffi_run(std::string_view source) {
  return has_identifier(source, "__tvm_ffi_run") ||
         (has_identifier(source, "TVM_FFI_DLL_EXPORT_TYPED_FUNC") && has_identifier(source, "run"));
}

}  // namespace kb::problem
