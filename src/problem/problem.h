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
#include "problem/family.h"
#include "problem/id.h"
#include "problem/installation.h"
#include "problem/problem_file.h"
#include "problem/ranges.h"
#include "problem/sample.h"
#include "problem/set.h"
#include "problem/subset.h"
#include "problem/text_file.h"

namespace kb::problem {

/// PROBLEM on the command line: an id of `set` (as find_set takes it), `SET:level1/19`, or a path
/// to a file. Checks that the text has a `class Model` and a `get_inputs` (error otherwise, one
/// sentence).
std::expected<Problem, std::string> find(const std::string& argument, const std::string& set = {});

}  // namespace kb::problem
