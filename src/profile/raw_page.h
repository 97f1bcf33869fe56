// Reads what `ncu --import REPORT --csv --page raw --print-units base` prints.
//
// The page is a CSV table: a line of column names that starts with "ID", a line of units, and a
// line for each launch; ncu's own messages may stand before it. The report that it was made from
// could be written by the candidate: the text is hostile.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "profile/launch.h"

namespace kb::profile {

inline constexpr std::size_t kMaxPageBytes = std::size_t{16} << 20;

/// The launches in their order, at most `most`. A value that is no number is none. Error: one
/// sentence (no table, over kMaxPageBytes, a quote that never ends).
std::expected<std::vector<Launch>, std::string> parse_raw_page(std::string_view page,
                                                               std::size_t most = 1000);

}  // namespace kb::profile
