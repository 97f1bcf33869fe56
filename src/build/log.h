// What a build printed, made fit for people and for JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kb::build {

inline constexpr std::size_t kMaxLogBytes = 64 << 10;

/// Removes the folders in `prefixes` from the beginning of every path ("/build/kernel.cpp:1:2"
/// becomes "kernel.cpp:1:2"), terminal control sequences and other control characters; replaces
/// what is not UTF-8; and keeps the first three quarters and the end of a text that is longer than
/// `max_bytes`, because the first error is the one that counts.
std::string clean_log(std::string_view text, const std::vector<std::string>& prefixes,
                      std::size_t max_bytes = kMaxLogBytes);

/// The line of a compiler's or Python's words that tells most about what went wrong: the first
/// error, the end of a traceback, otherwise the first line.
std::string first_error(std::string_view text);

}  // namespace kb::build
