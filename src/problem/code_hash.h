// The digest that says whether two Python files are the same program: a cache key for references,
// and the mark by which a problem is known again after someone reformatted it.
#pragma once

#include <string>
#include <string_view>

namespace kb::problem {

/// SHA-256 (hex) of Python code that ignores comments, blank lines and white space, but not
/// indentation structure, strings or docstrings. Two files with equal hashes parse to the same
/// program. Line ends may be LF, CR LF or CR. Text that Python would not read as UTF-8 (other
/// bytes, a NUL, a declaration of another encoding) is hashed byte for byte. Defined for any bytes;
/// linear in their number.
std::string code_hash(std::string_view python_source);

}  // namespace kb::problem
