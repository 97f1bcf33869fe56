// The static check: turns away what cannot be judged at all, and nothing else. Patterns never
// reject a candidate (honest code contains `pass`, `try` and patched-looking names); cheating is
// dealt with by how the judge measures.
#pragma once

#include <optional>
#include <string>

#include "problem/candidate.h"

namespace kb::check {

/// Null when the candidate may have an entry point, else one sentence that says which one is
/// missing: Python source that surely never binds `ModelNew`; native source without the identifier
/// `kb_run` outside comments and strings, which, where it includes TVM-FFI and is not HIP,
/// exports no `run` either.
std::optional<std::string> has_entry_point(const problem::Candidate& candidate);

}  // namespace kb::check
