// The memory that the judge shares with one worker: a memfd, sealed so that neither side can
// resize it (a shrunk file would be a SIGBUS in the judge), and the judge's mapping of it.
#pragma once

#include <cstddef>
#include <expected>
#include <span>
#include <string>

#include "worker/file_descriptor.h"

namespace kb::worker {

class Arena {
 public:
  /// All zero. Error: one sentence.
  static std::expected<Arena, std::string> create(std::size_t bytes);
  Arena() = default;
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  int fd() const { return fd_.get(); }
  std::size_t size() const { return size_; }
  std::span<std::byte> bytes() const { return {base_, size_}; }
  std::span<std::byte> range(std::size_t offset, std::size_t size) const {
    return bytes().subspan(offset, size);
  }

 private:
  FileDescriptor fd_;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace kb::worker
