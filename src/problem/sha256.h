// SHA-256, the one digest that names sources, builds and results.
#pragma once

#include <string>
#include <string_view>

namespace kb::problem {

/// The SHA-256 of `bytes` as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace kb::problem
