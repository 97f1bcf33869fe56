// What endpoints send, made safe to keep and to show. Their bytes are a stranger's: invalid UTF-8,
// control characters and lone surrogates occur, and none of them may lose an answer.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace kb::llm {

struct CleanText {
  std::string text;          ///< well-formed UTF-8
  std::size_t replaced = 0;  ///< ill-formed sequences that became U+FFFD
};
CleanText clean_utf8(std::string_view bytes);

/// `text` on one line, without control characters, at most about `max_bytes` long and then with an
/// ellipsis: for messages.
std::string one_line(std::string_view text, std::size_t max_bytes = 300);

/// Cuts `text` to at most `max_bytes`, at a character.
void cut_utf8(std::string& text, std::size_t max_bytes);

/// True when there is nothing but white space.
bool is_blank(std::string_view text);

/// Puts `mask` in place of every occurrence of `secret`; an empty secret is none.
void mask_secret(std::string& text, std::string_view secret, std::string_view mask = "[key]");

/// Parses what an endpoint sent; null when it is not JSON. Ill-formed UTF-8 and escapes of half a
/// surrogate pair (a character that the endpoint cut in two) become U+FFFD and are counted.
struct CleanJson {
  nlohmann::json json;
  std::size_t replaced = 0;
};
std::optional<CleanJson> parse_json(std::string_view bytes);

// Members of JSON of unknown shape: null or empty where there is none of that type.
const nlohmann::json* member(const nlohmann::json& object, std::string_view name);
std::string text_member(const nlohmann::json& object, std::string_view name);
/// Also null for a negative number.
std::optional<std::int64_t> count_member(const nlohmann::json& object, std::string_view name);

}  // namespace kb::llm
