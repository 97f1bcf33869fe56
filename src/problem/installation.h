// Where the files lie that come with the program: problems/, python/, include/.
#pragma once

#include <filesystem>

namespace kb::problem {

/// The folder that holds problems/, python/ and include/: $KERNELBENCH_HOME when it is set (even if
/// wrong: the error then names it), else
/// ../.. or ../share/kernelbench beside the executable, whichever has problems/, else the source
/// tree that this was built from.
std::filesystem::path installation_root();
/// The same for given facts. `home` is the variable's value, null or empty when it is not set.
std::filesystem::path installation_root(const char* home, const std::filesystem::path& executable);
/// The bundled set's folder: …/problems.
std::filesystem::path bundled_root();

}  // namespace kb::problem
