// A tokenizer for Python source, without Python: two files of equal tokens are one program, and a
// name inside a string or a comment is no name. It accepts any bytes. What Python would refuse
// comes out as `other` tokens that hold the bytes as they are.
//
// Where it differs from Python's own (all of it on the safe side: more tokens differ, never fewer):
//   - a number with letters behind it (`1if x`) is one token;
//   - an f-string is one token with its fields, white space in them included;
//   - indentation that is split by a backslash, or that mixes tabs and spaces so that its depth
//     depends on the width of a tab, is kept as it is, and so is all indentation after it.
// f-strings follow the rules of Python 3.12 (quotes may be used again inside a field), which accept
// what earlier versions accept.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::problem {

enum class TokenKind {
  name,  ///< identifiers and keywords
  number,
  string,  ///< with prefix and quotes
  op,
  newline,  ///< the end of a logical line; no text
  indent,   ///< no text
  dedent,   ///< no text
  other,  ///< what is none of these: an unfinished string, a stray character, irregular indentation
};

struct Token {
  TokenKind kind = TokenKind::other;
  std::string_view text;  ///< a part of the source
};

class PythonTokenizer {
 public:
  /// `source` must outlive the tokens. A byte order mark at its start is skipped.
  explicit PythonTokenizer(std::string_view source);
  /// Null at the end, after the newline and the dedents that close the last line.
  std::optional<Token> next();

 private:
  enum class Step { token, again };
  std::optional<Token> start_of_line();
  bool skip_blanks();
  Token scan_token();
  Token make(TokenKind kind, std::size_t begin);
  Token scan_string(std::size_t begin);
  bool scan_formatted_body(std::string_view quotes, bool raw, int depth);
  bool scan_field(int depth);
  bool scan_format_spec(std::string_view quotes, bool raw, int depth);
  bool scan_plain_body(std::string_view quotes);
  std::optional<Token> finish();

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  bool done() const { return at_ >= source_.size(); }
  bool at_line_break() const { return !done() && (peek() == '\n' || peek() == '\r'); }
  void skip_line_break();
  void skip_comment();

  struct Indentation {
    std::size_t wide = 0;    ///< with tabs to the next multiple of 8
    std::size_t narrow = 0;  ///< with tabs of width 1
  };

  std::string_view source_;
  std::size_t at_ = 0;
  bool line_start_ = true;
  bool line_has_tokens_ = false;
  bool irregular_ = false;  ///< indentation is given as it is from here on
  std::size_t brackets_ = 0;
  std::size_t pending_dedents_ = 0;
  std::vector<Indentation> indentation_{Indentation{}};
};

/// True when the program may bind the global `name`: by class, def, import, assignment (`:=` too),
/// `as` or `for`. Also true when it calls something that can bind names out of sight (exec,
/// globals, setattr, a star import …): false means surely not.
bool may_bind(std::string_view python_source, std::string_view name);

/// The first line with text of the module's docstring, without white space around it; empty when
/// there is none. Escapes stay as written.
std::string docstring_summary(std::string_view python_source);

/// The value of `name = "…"` at the top level of a module, where it is written as strings alone,
/// side by side and perhaps in parentheses; empty otherwise. A backslash before a quote or a
/// backslash is taken away, other escapes stay as written.
std::string string_constant(std::string_view python_source, std::string_view name);

}  // namespace kb::problem
