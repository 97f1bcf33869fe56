// What a piece of source defines, as far as text can tell: enough to choose between the blocks of
// an answer. Nothing here decides a verdict.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "problem/candidate.h"

namespace kb::prompt {

/// True when `source` defines the entry point: `ModelNew` by a class, an assignment or an import
/// (Python), or the function `kb_run` with a body, or a TVM-FFI function `run` (native). Words in
/// comments and strings do not count. Linear.
bool defines_entry_point(std::string_view source, problem::Backend language);

/// The names that a Python source uses and nowhere binds, those of builtins included.
std::set<std::string> free_names(std::string_view python_source);

/// The names that a Python source binds by def, class or assignment at the outermost level.
std::set<std::string> top_level_names(std::string_view python_source);

}  // namespace kb::prompt
