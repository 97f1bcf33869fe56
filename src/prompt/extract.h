// Finds the kernel in a model's answer.
//
// An answer is a stranger's text: several drafts, prose, reasoning tags, fences that are missing or
// never closed, bytes that are not UTF-8. The rules, in order:
//   1. What lies in reasoning tags (<think>…</think> and the like) is no part of the answer. A tag
//      that is never closed ends nothing: what follows is used, with a warning.
//   2. Fenced blocks (``` or ~~~, of any length, indented or not) are taken apart as Markdown does.
//   3. A block defines the entry point if it binds `ModelNew` (Python) or `kb_run` (native). The
//      last complete block that does is the candidate; earlier ones are drafts.
//   4. For Python, a block of CUDA or C++ that no Python block holds, beside a Python block that
//      compiles it by name, is joined with it: see `joined`.
//   5. No block defines it: the whole answer, if it reads as code and defines the entry point
//      (`bare`); otherwise the last block, with a warning; otherwise an error.
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
  bare,       ///< the answer has no fence and reads as code
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
