// The host compiler: which one, what exactly it is, and what it is told.
#pragma once

#include <expected>
#include <filesystem>
#include <string>
#include <vector>

namespace kb::build {

struct Compiler {
  std::filesystem::path path;  ///< absolute
  /// Everything about this compiler on this machine that a library depends on: path, version and
  /// configuration, folders it searches, the processor that -march=native means here, and libc. Two
  /// machines that share a cache share entries only where this is equal.
  std::string identity;
  /// The same without the processor: for code that is not compiled with -march=native.
  std::string portable_identity;
};

/// Identifies `path`, or when that is empty the first g++ in the system folders (the only ones that
/// a compile sandbox sees): g++, then the newest g++-N. Runs it once (3 ms), compiling nothing.
/// Error: one sentence.
std::expected<Compiler, std::string> find_compiler(const std::filesystem::path& path);

/// The flags for a native candidate, without those that name files.
const std::vector<std::string>& cpp_flags();

}  // namespace kb::build
