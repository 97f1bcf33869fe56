// What a judgement says to a model: the parts of a refinement message that are taken out of a
// result rather than written by us. Text in a result is untrusted: it comes cleaned and fenced.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace kb::prompt {

/// The part of a compiler's or Python's words that tells what went wrong: from the first error on
/// (with the line before it, which often says where), or the end of a traceback; at most
/// `max_lines`, lines of at most `max_line_bytes`. What is left out is said in brackets.
std::string telling_part(std::string_view log, std::size_t max_lines = 40,
                         std::size_t max_line_bytes = 400);

/// The result's message, fenced, and the kind of input that it failed on; empty when there is
/// neither.
std::string details_of(const nlohmann::json& result);

/// Times, speedup with its interval, the least time that the device allows, errors: what of it the
/// result has, a sentence a line.
std::string speed_of(const nlohmann::json& result);

/// The result's `profile` (a string, or an object of numbers and strings), fenced; empty without
/// one.
std::string profile_of(const nlohmann::json& result);

}  // namespace kb::prompt
