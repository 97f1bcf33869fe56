#include "build/log.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

namespace kb::build {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// The length of the well-formed UTF-8 sequence at the start of `text`; 0 if there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, beyond U+10FFFF.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) {
    return 0;
  }
  return length;
}

// The length of the terminal control sequence (ESC [ … letter) at the start of `text`, or 0.
std::size_t escape_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  std::size_t end = 2;
  while (end < text.size() && text[end] >= 0x20 && text[end] < 0x40) ++end;
  return end < text.size() ? end + 1 : end;
}

bool in_path(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/' || c == '_' || c == '.' ||
         c == '-';
}

// The length of the prefix that begins a path at `text`, whose previous character is `before`.
std::size_t prefix_length(std::string_view text, char before,
                          const std::vector<std::string>& prefixes) {
  // -I/build/x is a path too; "/usr/src/build/x" is another one.
  if (in_path(before) && before != 'I' && before != 'L') return 0;
  for (const std::string& prefix : prefixes) {
    if (!text.starts_with(prefix)) continue;
    if (text.size() > prefix.size() && text[prefix.size()] == '/') return prefix.size() + 1;
  }
  return 0;
}

bool continues_sequence(char c) {
  return (static_cast<std::uint8_t>(c) & 0xC0) == 0x80;
}

}  // namespace

std::string clean_log(std::string_view text, const std::vector<std::string>& prefixes,
                      std::size_t max_bytes) {
  std::string log;
  log.reserve(std::min(text.size(), 4 * max_bytes));
  char before = '\n';
  while (!text.empty()) {
    std::size_t length = 1;
    if (const std::size_t prefix = prefix_length(text, before, prefixes)) {
      text.remove_prefix(prefix);
      before = '/';
      continue;
    }
    before = text[0];
    if (const std::size_t escape = escape_length(text)) {
      length = escape;
    } else if ((text[0] >= 0 && text[0] < 0x20 && text[0] != '\n' && text[0] != '\t') ||
               text[0] == 0x7f) {
      // dropped; a carriage return too
    } else if (const std::size_t sequence = sequence_length(text)) {
      length = sequence;
      log += text.substr(0, length);
    } else {
      log += kReplacement;
    }
    text.remove_prefix(length);
  }
  if (log.size() <= max_bytes) return log;

  static constexpr std::string_view kGap = "\n… (shortened) …\n";
  const std::size_t room = max_bytes - std::min(max_bytes, kGap.size());
  std::size_t head = room / 4 * 3;
  while (head > 0 && continues_sequence(log[head])) --head;
  std::size_t tail = log.size() - (room - head);
  while (tail < log.size() && continues_sequence(log[tail])) ++tail;
  return log.substr(0, head).append(kGap).append(log, tail);
}

std::string first_error(std::string_view text) {
  while (text.starts_with('\n')) text.remove_prefix(1);
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::size_t at = 0;
  if (text.starts_with("Traceback")) {
    at = text.size();
  } else {
    // Warnings come before errors. "ptxas fatal   : …" and the linker do without the word.
    for (const std::string_view word : {"error:", "error   :", " fatal ", "undefined reference"}) {
      if (const std::size_t found = text.find(word); found != std::string_view::npos) {
        at = found;
        break;
      }
    }
  }
  const std::size_t line = text.substr(0, at).rfind('\n') + 1;  // npos + 1 is 0
  return std::string(text.substr(line, text.find('\n', line) - line));
}

}  // namespace kb::build
