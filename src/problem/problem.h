// Problems by id or by path, the files of the bundled set, and the names of sample files. No Python
// runs here: what a problem computes is known to the reference worker alone.
//
// Includes the whole folder; each header also stands alone.
#pragma once

#include <expected>
#include <string>

#include "digest/sha256.h"
#include "problem/candidate.h"
#include "problem/catalog.h"
#include "problem/code_hash.h"
#include "problem/id.h"
#include "problem/installation.h"
#include "problem/problem_file.h"
#include "problem/ranges.h"
#include "problem/sample.h"

namespace kb::problem {

/// PROBLEM on the command line: an id of the bundled set, or a path to a file.
/// Checks that the text has a `class Model` and a `get_inputs` (error otherwise, one sentence).
std::expected<Problem, std::string> find(const std::string& argument);

}  // namespace kb::problem
