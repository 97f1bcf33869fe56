// Memory that the judge shares with one worker: a memfd, sealed so that neither side can resize it
// (a shrunk file would be a SIGBUS in the judge), and the judge's mapping of it.
#pragma once

#include <cstddef>
#include <expected>
#include <memory>
#include <string>

#include "device/device.h"

namespace kb::cpu {

class SharedMemory final : public Memory {
 public:
  /// All zero. `name` shows in the memory maps of processes. Error: one sentence.
  static std::expected<std::unique_ptr<SharedMemory>, std::string> create(std::size_t bytes,
                                                                          const char* name);
  ~SharedMemory() override;

  int fd() const override { return fd_; }

 private:
  SharedMemory() = default;
  int fd_ = -1;
};

}  // namespace kb::cpu
