// extensions.json: what the candidate's import in the compile sandbox says it has built.
//
//   {"status": "ok" | "compile_error" | "load_error", "text": "...",
//    "extensions": [{"name": "fused_ops", "file": "ext/fused_ops/fused_ops.so"}]}
//
// The candidate ran in the process that wrote the file, so every byte of it may be the candidate's.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "build/build.h"

namespace kb::build {

inline constexpr std::size_t kMaxExtensionsBytes = 512 << 10;  ///< of the file
inline constexpr std::size_t kMaxExtensions = 64;

struct Extensions {
  Status status = Status::load_error;
  std::string text;  ///< as it came: see clean_log()
  struct Extension {
    std::string name;  ///< letters, digits, "_", "-", "." (not first); at most 128; each once
    std::string file;  ///< relative, without "." and ".." and empty parts, at most 1024 bytes
  };
  std::vector<Extension> extensions;  ///< none unless `status` is ok
};

/// Error: what is wrong, to follow "extensions.json ".
std::expected<Extensions, std::string> parse_extensions(std::string_view json);

}  // namespace kb::build
