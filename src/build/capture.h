// Asks a trusted program something, such as a compiler for its version.
#pragma once

#include <expected>
#include <string>
#include <vector>

namespace kb::build {

/// What the program wrote to stdout and stderr. It gets no input and of the environment only a PATH
/// of the system's folders. Error: errno, or 0 when it failed by itself.
std::expected<std::string, int> capture(std::vector<std::string> argv);

}  // namespace kb::build
