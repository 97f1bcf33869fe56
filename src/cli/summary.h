// One evaluation in words.
#pragma once

#include <string>

#include "judge/result.h"

namespace kb::cli {

/// "correct  2.31x [2.28, 2.34]  412.0 us against 951.7 us  flags: noisy" — one line, without
/// problem or candidate.
std::string one_line(const judge::Result& result);
/// The line of a compiler's or Python's words that tells most, shortened and fit for a terminal.
std::string telling_line(const std::string& text);
/// Several lines for `eval`: verdict, times, errors, flags with their meaning, phases.
std::string in_full(const judge::Result& result, const judge::Options& options);

}  // namespace kb::cli
