#include "prompt/entry_point.h"

#include <algorithm>
#include <array>
#include <vector>

#include "problem/native_source.h"
#include "problem/python_tokens.h"

namespace kb::prompt {
namespace {

using problem::PythonTokenizer;
using problem::Token;
using problem::TokenKind;

bool is_name(const Token& token, std::string_view text) {
  return token.kind == TokenKind::name && token.text == text;
}
bool is_op(const Token& token, std::string_view text) {
  return token.kind == TokenKind::op && token.text == text;
}

bool python_defines(std::string_view source) {
  PythonTokenizer tokens(source);
  Token before;
  bool name = false;  // the last token was ModelNew, where a name can be bound
  while (const auto token = tokens.next()) {
    if (name && (is_op(*token, "=") || is_op(*token, ":"))) return true;
    name = false;
    if (is_name(*token, "ModelNew")) {
      if (is_name(before, "class") || is_name(before, "as") || is_name(before, "import")) {
        return true;
      }
      name = before.text.empty();  // the start of a line
    }
    before = *token;
  }
  return false;
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// C or C++ source without comments, with literals emptied.
std::string bare_c(std::string_view text) {
  std::string result;
  const auto behind = [&](std::string_view close, std::size_t from) {
    const std::size_t end = text.find(close, from);
    return end == std::string_view::npos ? text.size() : end + close.size();
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("//")) {
      at = std::min(text.find('\n', at), text.size());
    } else if (rest.starts_with("/*")) {
      at = behind("*/", at + 2);
      result += ' ';
    } else if (rest.starts_with("R\"") && (at == 0 || !is_word(text[at - 1]))) {
      constexpr std::size_t kLongestDelimiter = 16;
      const std::size_t open = rest.substr(0, kLongestDelimiter + 3).find('(');
      at = open == std::string_view::npos
               ? at + 2
               : behind(")" + std::string(rest.substr(2, open - 2)) + "\"", at + open);
      result += "\"\"";
    } else if (rest[0] == '"' ||
               (rest[0] == '\'' && (at == 0 || !is_word(text[at - 1])))) {  // 1'000 is a number
      const char quote = text[at++];
      while (at < text.size() && text[at] != quote && text[at] != '\n')
        at += text[at] == '\\' ? 2 : 1;
      at = std::min(at + 1, text.size());
      result += "\"\"";
    } else {
      result += text[at++];
    }
  }
  return result;
}

bool native_defines(std::string_view source) {
  constexpr std::string_view kName = "kb_run";
  const std::string text = bare_c(source);
  for (std::size_t at = text.find(kName); at != std::string::npos;
       at = text.find(kName, at + kName.size())) {
    if (at > 0 && is_word(text[at - 1])) continue;
    std::size_t next = text.find_first_not_of(" \t\r\n", at + kName.size());
    if (next == std::string::npos || text[next] != '(') continue;
    const std::size_t close = text.find_first_of("();{", next + 1);
    if (close == std::string::npos || text[close] != ')') continue;
    next = text.find_first_not_of(" \t\r\n", close + 1);
    if (next == std::string::npos) continue;
    const std::string_view rest = std::string_view(text).substr(next);
    if (rest[0] == '{' || rest.starts_with("noexcept") || rest.starts_with("try")) return true;
  }
  return false;
}

bool is_keyword(std::string_view word) {
  constexpr std::array kWords = {
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  return std::ranges::find(kWords, word) != kWords.end();
}

}  // namespace

bool defines_entry_point(std::string_view source, problem::Backend language) {
  if (language == problem::Backend::python) return python_defines(source);
  return native_defines(source) ||
         (language != problem::Backend::hip && problem::is_tvm_ffi_function(source) &&
          problem::exports_tvm_ffi_run(source));
}

std::set<std::string> free_names(std::string_view python_source) {
  std::set<std::string> used, bound;
  PythonTokenizer tokens(python_source);
  Token before, name;
  bool in_from = false, in_import = false, in_for = false, after_def = false;
  int parameters = 0;  // depth of the brackets of a def's parameters
  while (const auto token = tokens.next()) {
    if (name.kind == TokenKind::name && (is_op(*token, "=") || is_op(*token, ":="))) {
      bound.emplace(name.text);
    }
    name = {};
    if (token->kind == TokenKind::newline) in_from = in_import = after_def = false;
    if (is_op(*token, "(") && (after_def || parameters > 0)) ++parameters, after_def = false;
    if (is_op(*token, ")") && parameters > 0) --parameters;
    if (is_name(*token, "in")) in_for = false;
    if (token->kind == TokenKind::name && !is_keyword(token->text) && !in_from) {
      const bool attribute = is_op(before, ".");
      const bool binds = in_import || in_for || is_name(before, "def") ||
                         is_name(before, "class") || is_name(before, "as") ||
                         (parameters == 1 && (is_op(before, "(") || is_op(before, ",") ||
                                              is_op(before, "*") || is_op(before, "**")));
      if (is_name(before, "def")) after_def = true;
      if (binds)
        bound.emplace(token->text);
      else if (!attribute)
        used.emplace(token->text);
      if (!attribute) name = *token;
    }
    if (is_name(*token, "from") && before.text.empty()) in_from = true;  // of a module
    if (is_name(*token, "import")) in_from = false, in_import = true;
    if (is_name(*token, "for")) in_for = true;
    before = *token;
  }
  std::erase_if(used, [&](const std::string& one) { return bound.contains(one); });
  return used;
}

std::set<std::string> top_level_names(std::string_view python_source) {
  std::set<std::string> names;
  PythonTokenizer tokens(python_source);
  Token before, name;
  int depth = 0;
  while (const auto token = tokens.next()) {
    if (token->kind == TokenKind::indent) ++depth;
    if (token->kind == TokenKind::dedent) --depth;
    if (name.kind == TokenKind::name && is_op(*token, "=")) names.emplace(name.text);
    name = {};
    if (depth == 0 && token->kind == TokenKind::name) {
      if (is_name(before, "def") || is_name(before, "class")) names.emplace(token->text);
      if (before.text.empty()) name = *token;
    }
    before = *token;
  }
  return names;
}

}  // namespace kb::prompt
