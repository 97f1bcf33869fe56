#include "problem/code_hash.h"

#include <algorithm>
#include <cstdint>

#include "digest/sha256.h"
#include "problem/python_tokens.h"
#include "problem/text_file.h"

namespace kb::problem {
namespace {

// True when a comment of the first two lines declares an encoding other than UTF-8 (PEP 263): such
// a comment changes what strings mean.
bool declares_other_encoding(std::string_view source) {
  for (int line = 0; line < 2 && !source.empty(); ++line) {
    std::string_view text = source.substr(0, source.find_first_of("\r\n"));
    source.remove_prefix(text.size());
    source.remove_prefix(source.starts_with("\r\n") ? 2 : std::min<std::size_t>(1, source.size()));
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t\f")));
    if (!text.starts_with("#")) continue;
    for (std::size_t at = text.find("coding"); at != std::string_view::npos;
         at = text.find("coding", at + 1)) {
      std::string_view rest = text.substr(at + 6);
      if (!rest.starts_with(":") && !rest.starts_with("=")) continue;
      rest.remove_prefix(1);
      rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(" \t")));
      std::string name;
      for (const char c : rest) {
        const bool letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c != '-' && c != '_' && c != '.') break;
        if (c != '-' && c != '_')
          name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      }
      if (name.empty()) continue;
      if (name != "utf8" && name != "utf8sig") return true;
      break;
    }
  }
  return false;
}

// Appends one token so that no two sequences give equal bytes: kind, length, text. Line breaks
// inside strings are LF, as Python reads them.
void append(std::string& bytes, const Token& token) {
  std::string text;
  text.reserve(token.text.size());
  for (std::size_t i = 0; i < token.text.size(); ++i) {
    if (token.text[i] != '\r') {
      text += token.text[i];
    } else {
      if (i + 1 < token.text.size() && token.text[i + 1] == '\n') ++i;
      text += '\n';
    }
  }
  bytes += static_cast<char>('a' + static_cast<int>(token.kind));
  const auto length = static_cast<std::uint32_t>(text.size());
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>((length >> shift) & 0xff);
  bytes += text;
}

}  // namespace

std::string code_hash(std::string_view python_source) {
  // The first byte keeps the two kinds of digest apart.
  std::string bytes = "T";
  if (!is_utf8(python_source) || python_source.find('\0') != std::string_view::npos ||
      declares_other_encoding(python_source)) {
    return sha256_hex("R" + std::string(python_source));
  }
  PythonTokenizer tokens(python_source);
  while (const auto token = tokens.next()) append(bytes, *token);
  return sha256_hex(bytes);
}

}  // namespace kb::problem
