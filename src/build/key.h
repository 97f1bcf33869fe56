// The name of a cache entry: a SHA-256 over everything that the entry's contents depend on.
#pragma once

#include <string>
#include <string_view>

#include "digest/sha256.h"

namespace kb::build {

/// Collects named ingredients. Names and values are prefixed by their lengths, so that no two
/// different lists of ingredients give one digest.
class Key {
 public:
  /// `kind` keeps keys of different purposes apart ("cpp", "python").
  explicit Key(std::string_view kind);
  void add(std::string_view name, std::string_view value);
  /// 64 hex digits. The object is spent afterwards.
  std::string hex() { return digest_.hex(); }

 private:
  Sha256 digest_;
};

}  // namespace kb::build
