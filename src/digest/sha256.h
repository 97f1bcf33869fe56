// SHA-256 by OpenSSL: the one digest that names sources, builds and results.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace kb {

class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();

  void update(std::string_view bytes);
  /// 64 lower-case hex digits. The object is spent afterwards.
  std::string hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// The digest of one string, as 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

/// True for 64 lower-case hex digits.
bool is_sha256_hex(std::string_view text);

}  // namespace kb
