// Finds the kernel in a model's answer.
//
// An answer is a stranger's text: several drafts, prose, reasoning tags, fences that are missing or
// never closed, bytes that are not UTF-8. The rules, in order:
//   1. What lies in reasoning tags (<think>…</think> and the like) is no part of the answer, unless
//      there is no kernel outside of them. A tag that is never closed ends nothing.
//   2. Fenced blocks (``` or ~~~, of any length, indented or not) are taken apart as Markdown does.
//   3. The last complete block that defines the entry point (`ModelNew` for Python, `kb_run` for
//      native code) is the candidate; earlier ones are drafts. A block whose fence is never closed
//      counts only when no complete one will do.
//   4. Blocks belong together when the candidate says so:
//        Python: earlier Python blocks that bind names which the candidate uses and does not bind
//          stand before it; a C++ or CUDA block whose file the candidate names in a string
//          ("kernel.cu"), or the only such block beside the only such name, is written to a
//          temporary file when the candidate is imported.
//        native: a block that is called as an `#include "name.h"` of the candidate stands in its
//          place.
//   5. Text without a fence is the candidate if it defines the entry point, less the prose around
//      it. Otherwise the last block is a guess; without any block there is no code.
// Linear in the length of the answer.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "problem/candidate.h"

namespace kb::prompt {

/// Where the code was found.
enum class How {
  fenced,     ///< in a complete fenced block that defines the entry point
  joined,     ///< in several blocks that belong together
  truncated,  ///< in a block whose fence is never closed: the answer was probably cut off
  bare,       ///< in text outside of any fence
  guessed     ///< in a block that does not define the entry point
};
std::string_view name_of(How how);  ///< "fenced", …

struct Extraction {
  std::string code;  ///< UTF-8, ends in a line feed
  How how = How::fenced;
  std::vector<std::string> warnings;  ///< sentences for people; no text of the answer in them
};

/// Error: one sentence that says why there is no code (an empty answer, prose alone, …).
std::expected<Extraction, std::string> extract_code(std::string_view answer,
                                                    problem::Backend language);

}  // namespace kb::prompt
