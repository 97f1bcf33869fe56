#include "problem/python_tokens.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace kb::problem {
namespace {

// Python's own limit is 150; deeper nesting is treated as an unfinished string, so that recursion
// is bounded.
constexpr int kMaxFieldDepth = 150;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_name(char c) {
  return is_name_start(c) || is_digit(c);
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\f';
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

struct Prefix {
  bool raw = false;
  bool formatted = false;
};

// What a word before a quote means; null when it is no string prefix.
std::optional<Prefix> string_prefix(std::string_view word) {
  if (word.size() > 2) return std::nullopt;
  std::string letters;
  for (const char c : word) letters += lower(c);
  std::sort(letters.begin(), letters.end());
  static constexpr std::array<std::string_view, 9> kPrefixes = {"",  "r",  "b",  "u", "f",
                                                                "t", "br", "fr", "rt"};
  if (std::find(kPrefixes.begin(), kPrefixes.end(), letters) == kPrefixes.end())
    return std::nullopt;
  return Prefix{letters.find('r') != std::string::npos,
                letters.find_first_of("ft") != std::string::npos};
}

// The operator at the front of `text`: the longest that matches; empty when there is none.
std::string_view operator_at(std::string_view text) {
  static constexpr std::array<std::string_view, 48> kOperators = {
      "**=", "//=", ">>=", "<<=", "...", "!=", "<>", "==", "<=", ">=", "->", ":=",
      "+=",  "-=",  "*=",  "/=",  "%=",  "&=", "|=", "^=", "@=", "**", "//", "<<",
      ">>",  "+",   "-",   "*",   "/",   "%",  "@",  "&",  "|",  "^",  "~",  "<",
      ">",   "(",   ")",   "[",   "]",   "{",  "}",  ",",  ":",  ".",  ";",  "="};
  for (const std::string_view candidate : kOperators) {
    if (text.starts_with(candidate)) return text.substr(0, candidate.size());
  }
  return {};
}

// The length of the number at the front of `text`, which starts with a digit, or a point and a
// digit.
std::size_t number_length(std::string_view text) {
  std::size_t i = 0;
  const auto at = [&](std::size_t k) { return k < text.size() ? text[k] : '\0'; };
  const char base = lower(at(1));
  if (at(0) == '0' && (base == 'x' || base == 'o' || base == 'b')) {
    i = 2;
    while (is_hex(at(i)) || at(i) == '_') ++i;
  } else {
    const auto digits = [&] {
      while (is_digit(at(i)) || at(i) == '_') ++i;
    };
    digits();
    if (at(i) == '.') {
      ++i;
      digits();
    }
    if (lower(at(i)) == 'e') {
      const std::size_t sign = at(i + 1) == '+' || at(i + 1) == '-' ? 1 : 0;
      if (is_digit(at(i + 1 + sign))) {
        i += 1 + sign;
        digits();
      }
    }
    if (lower(at(i)) == 'j') ++i;
  }
  // Letters directly behind it: `1if` is legal, `1as` is not, though `1 as` is. Kept together, the
  // two never look alike.
  while (is_name(at(i))) ++i;
  return i;
}

}  // namespace

PythonTokenizer::PythonTokenizer(std::string_view source) : source_(source) {
  if (source_.starts_with("\xef\xbb\xbf")) source_.remove_prefix(3);
}

Token PythonTokenizer::make(TokenKind kind, std::size_t begin) {
  return {kind, source_.substr(begin, at_ - begin)};
}

void PythonTokenizer::skip_line_break() {
  if (peek() == '\r' && peek(1) == '\n') ++at_;
  ++at_;
}

void PythonTokenizer::skip_comment() {
  while (!done() && !at_line_break()) ++at_;
}

std::optional<Token> PythonTokenizer::next() {
  while (true) {
    if (pending_dedents_ > 0) {
      --pending_dedents_;
      return Token{TokenKind::dedent, {}};
    }
    if (line_start_) {
      if (auto token = start_of_line()) return token;
      if (line_start_ && !done()) continue;  // a blank line
      if (pending_dedents_ > 0) continue;
    }
    if (!skip_blanks()) continue;
    if (done()) return finish();
    if (at_line_break()) {
      skip_line_break();
      if (brackets_ > 0) continue;
      line_start_ = true;
      if (!line_has_tokens_) continue;
      line_has_tokens_ = false;
      return Token{TokenKind::newline, {}};
    }
    line_has_tokens_ = true;
    return scan_token();
  }
}

// Skips white space, a comment and continued line ends. False when there may be more to skip.
bool PythonTokenizer::skip_blanks() {
  while (!done() && is_blank(peek())) ++at_;
  if (peek() == '#' && !done()) skip_comment();
  if (peek() == '\\' && (peek(1) == '\n' || peek(1) == '\r')) {
    const std::size_t backslash = at_;
    ++at_;
    skip_line_break();
    if (!done()) return false;
    // Nothing follows: Python refuses that, so the backslash is a token.
    at_ = backslash;
  }
  return true;
}

// Measures a line's indentation. Null when the line is blank (line_start_ stays) or has the depth
// of the line before; otherwise an indent, the first dedent's place in pending_dedents_, or
// irregular indentation as `other`.
std::optional<Token> PythonTokenizer::start_of_line() {
  const std::size_t begin = at_;
  Indentation here;
  bool split = false;
  while (!done()) {
    const char c = peek();
    if (c == ' ') {
      ++here.wide, ++here.narrow;
    } else if (c == '\t') {
      here.wide = (here.wide / 8 + 1) * 8;
      ++here.narrow;
    } else if (c == '\f') {
      here = {};
    } else if (c == '\\' && (peek(1) == '\n' || peek(1) == '\r')) {
      split = true;
      ++at_;
      skip_line_break();
      continue;
    } else {
      break;
    }
    ++at_;
  }
  if (!split) {
    if (done()) return std::nullopt;
    if (peek() == '#') skip_comment();
    if (at_line_break()) {
      skip_line_break();
      return std::nullopt;
    }
    if (done()) return std::nullopt;
  }
  line_start_ = false;

  const auto deeper = [](const Indentation& a, const Indentation& b) {
    return a.wide > b.wide && a.narrow > b.narrow;
  };
  const auto equal = [](const Indentation& a, const Indentation& b) {
    return a.wide == b.wide && a.narrow == b.narrow;
  };
  if (!irregular_ && !split) {
    if (equal(here, indentation_.back())) return std::nullopt;
    if (deeper(here, indentation_.back())) {
      indentation_.push_back(here);
      return Token{TokenKind::indent, {}};
    }
    const auto outer = std::find_if(indentation_.begin(), indentation_.end(),
                                    [&](const Indentation& level) { return equal(level, here); });
    if (outer != indentation_.end()) {
      pending_dedents_ = static_cast<std::size_t>(indentation_.end() - outer) - 1;
      indentation_.erase(outer + 1, indentation_.end());
      return std::nullopt;
    }
  }
  irregular_ = true;
  line_has_tokens_ = true;
  return make(TokenKind::other, begin);
}

std::optional<Token> PythonTokenizer::finish() {
  if (line_has_tokens_) {
    line_has_tokens_ = false;
    line_start_ = true;
    return Token{TokenKind::newline, {}};
  }
  if (indentation_.size() > 1) {
    indentation_.pop_back();
    return Token{TokenKind::dedent, {}};
  }
  return std::nullopt;
}

Token PythonTokenizer::scan_token() {
  const std::size_t begin = at_;
  const char c = peek();
  if (is_name_start(c)) {
    while (!done() && is_name(peek())) ++at_;
    if (!done() && (peek() == '"' || peek() == '\'') &&
        string_prefix(source_.substr(begin, at_ - begin))) {
      return scan_string(begin);
    }
    return make(TokenKind::name, begin);
  }
  if (c == '"' || c == '\'') return scan_string(begin);
  if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
    at_ += number_length(source_.substr(at_));
    return make(TokenKind::number, begin);
  }
  const std::string_view op = operator_at(source_.substr(at_));
  if (op.empty()) {
    ++at_;
    return make(TokenKind::other, begin);
  }
  at_ += op.size();
  if (op == "(" || op == "[" || op == "{") ++brackets_;
  if ((op == ")" || op == "]" || op == "}") && brackets_ > 0) --brackets_;
  return make(TokenKind::op, begin);
}

// A string whose prefix begins at `begin` and whose first quote is at at_. Unfinished: `other`, up
// to the line's or the file's end.
Token PythonTokenizer::scan_string(std::size_t begin) {
  const auto prefix = string_prefix(source_.substr(begin, at_ - begin)).value_or(Prefix{});
  const char quote = peek();
  const bool triple = peek(1) == quote && peek(2) == quote;
  const std::string_view quotes = source_.substr(at_, triple ? 3 : 1);
  at_ += quotes.size();
  const bool finished =
      prefix.formatted ? scan_formatted_body(quotes, prefix.raw, 0) : scan_plain_body(quotes);
  return make(finished ? TokenKind::string : TokenKind::other, begin);
}

bool PythonTokenizer::scan_plain_body(std::string_view quotes) {
  while (!done()) {
    if (source_.substr(at_).starts_with(quotes)) {
      at_ += quotes.size();
      return true;
    }
    if (at_line_break()) {
      if (quotes.size() == 1) return false;
      skip_line_break();
    } else if (peek() == '\\' && at_ + 1 < source_.size()) {
      ++at_;
      if (at_line_break()) {
        skip_line_break();
      } else {
        ++at_;
      }
    } else {
      ++at_;
    }
  }
  return false;
}

// The literal part of an f-string; its closing quotes are taken too. When it is unfinished, the
// rest of the file goes with it: a field may hold line breaks, so there is no better place to end.
bool PythonTokenizer::scan_formatted_body(std::string_view quotes, bool raw, int depth) {
  const auto unfinished = [this] {
    at_ = source_.size();
    return false;
  };
  while (!done()) {
    if (source_.substr(at_).starts_with(quotes)) {
      at_ += quotes.size();
      return true;
    }
    const char c = peek();
    if (at_line_break()) {
      if (quotes.size() == 1) return unfinished();
      skip_line_break();
    } else if (c == '\\') {
      ++at_;
      if (!raw && peek() == 'N' && peek(1) == '{') {
        while (!done() && !at_line_break() && peek() != '}' &&
               !source_.substr(at_).starts_with(quotes))
          ++at_;
        if (peek() == '}') ++at_;
      } else if (at_line_break()) {
        skip_line_break();
      } else if (!done() && peek() != '{' && peek() != '}') {
        ++at_;
      }
    } else if (c == '{' && peek(1) == '{') {
      at_ += 2;
    } else if (c == '{') {
      ++at_;
      if (depth >= kMaxFieldDepth || !scan_field(depth + 1)) return unfinished();
      // scan_field stops behind `}`, or behind `:`.
      if (source_[at_ - 1] == ':' && !scan_format_spec(quotes, raw, depth + 1)) return unfinished();
    } else {
      ++at_;
    }
  }
  return unfinished();
}

// The expression of a field, behind its `{`. Stops behind the `}` that closes it, or behind the `:`
// that begins its format.
bool PythonTokenizer::scan_field(int depth) {
  std::size_t brackets = 0;
  while (!done()) {
    const char c = peek();
    if (c == '#') {
      skip_comment();
    } else if (is_name_start(c) || c == '"' || c == '\'') {
      const std::size_t begin = at_;
      while (!done() && is_name(peek())) ++at_;
      if (peek() != '"' && peek() != '\'') continue;
      const auto prefix = string_prefix(source_.substr(begin, at_ - begin)).value_or(Prefix{});
      const bool triple = peek(1) == peek() && peek(2) == peek();
      const std::string_view inner = source_.substr(at_, triple ? 3 : 1);
      at_ += inner.size();
      if (prefix.formatted ? !scan_formatted_body(inner, prefix.raw, depth)
                           : !scan_plain_body(inner))
        return false;
    } else if (c == '(' || c == '[' || c == '{') {
      ++brackets;
      ++at_;
    } else if (c == ')' || c == ']' || c == '}') {
      ++at_;
      if (brackets == 0) {
        if (c == '}') return true;
        continue;
      }
      --brackets;
    } else if (c == ':' && brackets == 0) {
      ++at_;
      return true;
    } else {
      ++at_;
    }
  }
  return false;
}

// The format behind a field's `:`, up to and with the `}` that closes the field. It is text, in
// which fields may be nested.
bool PythonTokenizer::scan_format_spec(std::string_view quotes, bool raw, int depth) {
  while (!done()) {
    if (source_.substr(at_).starts_with(quotes)) return false;
    if (quotes.size() == 1 && at_line_break()) return false;
    const char c = peek();
    if (c == '}') {
      ++at_;
      return true;
    }
    if (c == '{') {
      ++at_;
      if (depth >= kMaxFieldDepth || !scan_field(depth + 1)) return false;
      if (source_[at_ - 1] == ':' && !scan_format_spec(quotes, raw, depth + 1)) return false;
    } else if (c == '\\' && !raw && peek(1) == 'N' && peek(2) == '{') {
      while (!done() && !at_line_break() && peek() != '}') ++at_;
      if (peek() == '}') ++at_;
    } else if (c == '\\' && at_ + 1 < source_.size() && peek(1) != '{' && peek(1) != '}') {
      at_ += 2;
    } else {
      ++at_;
    }
  }
  return false;
}

bool may_bind(std::string_view python_source, std::string_view name) {
  // Names that can bind others out of a tokenizer's sight; and sys.modules, below.
  static constexpr std::array<std::string_view, 6> kReflection = {"exec", "globals", "locals",
                                                                  "vars", "setattr", "__dict__"};
  PythonTokenizer tokens(python_source);
  std::string_view first;  // of the statement
  std::string_view previous;
  std::string_view before_previous;
  std::size_t brackets = 0;
  bool seen = false;  // the name stands in this statement where an assignment may follow
  while (const auto token = tokens.next()) {
    const bool is_op = token->kind == TokenKind::op;
    const std::string_view text = token->text;
    if (token->kind == TokenKind::newline || token->kind == TokenKind::indent ||
        token->kind == TokenKind::dedent || (is_op && text == ";" && brackets == 0)) {
      first = previous = before_previous = {};
      seen = false;
      continue;
    }
    const bool importing = first == "from" || first == "import";
    if (is_op) {
      if (text == "*" && previous == "import") return true;
      if (text == ":=" && previous == name) return true;
      if (text == "=" && brackets == 0 && seen) return true;
      if (text == "(" || text == "[" || text == "{") ++brackets;
      if ((text == ")" || text == "]" || text == "}") && brackets > 0) --brackets;
      // `if x: Name = …` and `class A: Name = …` begin a statement behind the colon.
      if (text == ":" && brackets == 0 && !seen) first = {};
    } else if (token->kind == TokenKind::name) {
      if (std::find(kReflection.begin(), kReflection.end(), text) != kReflection.end()) return true;
      if (text == "modules" && previous == "." && before_previous == "sys") return true;
      if (text == name && previous != ".") {
        if (importing || previous == "class" || previous == "def" || previous == "as" ||
            previous == "for" || previous == "global" || first == "for") {
          return true;
        }
        seen = true;
      }
    }
    if (first.empty() && !(is_op && text == ":")) first = text;
    before_previous = previous;
    previous = text;
  }
  return false;
}

namespace {

// What a string token holds between its quotes; null for bytes and f-strings.
std::optional<std::string_view> body_of(std::string_view token) {
  std::size_t prefix = 0;
  while (prefix < token.size() && token[prefix] != '"' && token[prefix] != '\'') {
    const char c = lower(token[prefix]);
    if (c != 'r' && c != 'u') return std::nullopt;
    ++prefix;
  }
  token.remove_prefix(prefix);
  const std::size_t quotes =
      token.size() >= 6 && token[1] == token[0] && token[2] == token[0] ? 3 : 1;
  return token.substr(quotes, token.size() - 2 * quotes);
}

}  // namespace

std::string docstring_summary(std::string_view python_source) {
  PythonTokenizer tokens(python_source);
  const auto token = tokens.next();
  if (!token || token->kind != TokenKind::string) return {};
  const auto end = tokens.next();
  if (!end || end->kind != TokenKind::newline) return {};
  const auto body = body_of(token->text);
  if (!body) return {};
  std::string_view text = *body;
  constexpr std::string_view kSpace = " \t\f\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  text = text.substr(0, text.find_first_of("\r\n"));
  return std::string(text.substr(0, text.find_last_not_of(kSpace) + 1));
}

std::string string_constant(std::string_view python_source, std::string_view name) {
  PythonTokenizer tokens(python_source);
  int depth = 0;
  bool line_start = true;
  while (const auto token = tokens.next()) {
    if (token->kind == TokenKind::indent) ++depth;
    if (token->kind == TokenKind::dedent) --depth;
    const bool first = line_start && depth == 0;
    line_start = token->kind == TokenKind::newline || token->kind == TokenKind::indent ||
                 token->kind == TokenKind::dedent;
    if (!first || token->kind != TokenKind::name || token->text != name) continue;
    const auto equals = tokens.next();
    if (!equals) return {};
    if (equals->text != "=") continue;
    std::string value;
    while (const auto part = tokens.next()) {
      if (part->kind == TokenKind::newline) return value;
      if (part->kind == TokenKind::op && (part->text == "(" || part->text == ")")) continue;
      const auto body = part->kind == TokenKind::string ? body_of(part->text) : std::nullopt;
      if (!body) return {};
      for (std::size_t i = 0; i < body->size(); ++i) {
        const char next = i + 1 < body->size() ? (*body)[i + 1] : '\0';
        if ((*body)[i] == '\\' && (next == '"' || next == '\'' || next == '\\')) ++i;
        value += (*body)[i];
      }
    }
    return value;
  }
  return {};
}

}  // namespace kb::problem
