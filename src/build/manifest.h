// manifest.json, which makes a folder an entry of the cache.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "build/cache.h"

namespace kb::build {

struct Manifest {
  std::string key;
  std::string status;
  std::string log;
  std::string created;  ///< ISO 8601, UTC
  double build_ms = 0;
  std::vector<Workplace::File> files;
};

/// JSON text that holds the manifest and its own SHA-256.
std::string serialize(const Manifest& manifest);

/// Null for anything that serialize() did not write, white space aside.
std::optional<Manifest> parse_manifest(std::string_view text);

}  // namespace kb::build
