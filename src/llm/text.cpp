#include "llm/text.h"

#include <cmath>

namespace kb::llm {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

unsigned char byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// The length of the well-formed sequence at `i`, 0 if there is none. The second byte has a narrower
// range after four of the leads: no overlong form, no surrogate, nothing above U+10FFFF.
std::size_t sequence_length(std::string_view text, std::size_t i) {
  const unsigned char lead = byte_at(text, i);
  if (lead < 0x80) return 1;
  std::size_t length = 0;
  unsigned char low = 0x80, high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (text.size() - i < length) return 0;
  if (byte_at(text, i + 1) < low || byte_at(text, i + 1) > high) return 0;
  for (std::size_t k = 2; k < length; ++k)
    if ((byte_at(text, i + k) & 0xC0) != 0x80) return 0;
  return length;
}

// The code unit of an escape \uXXXX at `i`, null if there is none.
std::optional<unsigned> unicode_escape(std::string_view text, std::size_t i) {
  if (text.size() - i < 6 || text[i] != '\\' || text[i + 1] != 'u') return std::nullopt;
  unsigned value = 0;
  for (std::size_t k = i + 2; k < i + 6; ++k) {
    const char c = text[k];
    unsigned digit = 0;
    if (c >= '0' && c <= '9')
      digit = static_cast<unsigned>(c - '0');
    else if (c >= 'a' && c <= 'f')
      digit = static_cast<unsigned>(c - 'a') + 10;
    else if (c >= 'A' && c <= 'F')
      digit = static_cast<unsigned>(c - 'A') + 10;
    else
      return std::nullopt;
    value = value * 16 + digit;
  }
  return value;
}

CleanText pair_surrogates(std::string_view json) {
  CleanText clean;
  for (std::size_t i = 0; i < json.size();) {
    if (json[i] != '\\') {
      clean.text += json[i++];
      continue;
    }
    const auto unit = unicode_escape(json, i);
    if (!unit) {
      clean.text += json.substr(i, 2);  // an escaped backslash must not start another escape
      i += 2;
      continue;
    }
    const bool high = *unit >= 0xD800 && *unit < 0xDC00;
    const bool low = *unit >= 0xDC00 && *unit < 0xE000;
    const auto next = high ? unicode_escape(json, i + 6) : std::nullopt;
    if (next && *next >= 0xDC00 && *next < 0xE000) {
      clean.text += json.substr(i, 12);
      i += 12;
      continue;
    }
    if (high || low) {
      clean.text += "\\ufffd";
      ++clean.replaced;
    } else {
      clean.text += json.substr(i, 6);
    }
    i += 6;
  }
  return clean;
}

}  // namespace

CleanText clean_utf8(std::string_view bytes) {
  CleanText clean;
  clean.text.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size();) {
    if (const std::size_t length = sequence_length(bytes, i); length > 0) {
      clean.text += bytes.substr(i, length);
      i += length;
    } else {
      clean.text += kReplacement;
      ++clean.replaced;
      ++i;
    }
  }
  return clean;
}

std::string one_line(std::string_view text, std::size_t max_bytes) {
  const std::string clean = clean_utf8(text.substr(0, 4 * max_bytes)).text;
  std::string line;
  bool space = false;
  for (std::size_t i = 0; i < clean.size();) {
    const std::size_t length = sequence_length(clean, i);
    const unsigned char c = byte_at(clean, i);
    // The C1 controls are U+0080 to U+009F: C2 80 to C2 9F.
    const bool control = c < 0x20 || c == 0x7F || (c == 0xC2 && byte_at(clean, i + 1) < 0xA0);
    if (control || c == ' ') {
      space = space || c == ' ' || c == '\n' || c == '\t' || c == '\r';
    } else {
      if (space && !line.empty()) line += ' ';
      space = false;
      line.append(clean, i, length);
    }
    i += length;
  }
  if (line.size() > max_bytes) {
    cut_utf8(line, max_bytes);
    line += "…";
  }
  return line;
}

void cut_utf8(std::string& text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return;
  while (max_bytes > 0 && (byte_at(text, max_bytes) & 0xC0) == 0x80) --max_bytes;
  text.resize(max_bytes);
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos;
}

void mask_secret(std::string& text, std::string_view secret, std::string_view mask) {
  if (secret.empty()) return;
  for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += mask.size())
    text.replace(at, secret.size(), mask);
}

std::optional<CleanJson> parse_json(std::string_view bytes) {
  const auto parse = [](const std::string& text) {
    return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  };
  CleanText clean = clean_utf8(bytes);
  auto json = parse(clean.text);
  if (json.is_discarded()) {
    const CleanText paired = pair_surrogates(clean.text);
    if (paired.replaced == 0) return std::nullopt;
    json = parse(paired.text);
    if (json.is_discarded()) return std::nullopt;
    clean.replaced += paired.replaced;
  }
  return CleanJson{std::move(json), clean.replaced};
}

const nlohmann::json* member(const nlohmann::json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::string text_member(const nlohmann::json& object, std::string_view name) {
  const auto* found = member(object, name);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<std::int64_t> count_member(const nlohmann::json& object, std::string_view name) {
  const auto* found = member(object, name);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  // Some endpoints count in floating point.
  const double value = found->get<double>();
  if (!(value >= 0) || value > 1e15) return std::nullopt;
  return std::llround(value);
}

}  // namespace kb::llm
