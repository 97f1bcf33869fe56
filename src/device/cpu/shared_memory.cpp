#include "device/cpu/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace kb::cpu {

std::expected<std::unique_ptr<SharedMemory>, std::string> SharedMemory::create(std::size_t bytes,
                                                                               const char* name) {
  const auto failed = [&](const char* what) {
    return std::unexpected(fmt::format("cannot share {} MiB with a worker: {} failed: {}",
                                       bytes >> 20, what, std::strerror(errno)));
  };
  std::unique_ptr<SharedMemory> memory(new SharedMemory());
  memory->fd_ = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory->fd_ < 0) return failed("memfd_create");
  if (::ftruncate(memory->fd_, static_cast<off_t>(bytes)) != 0) return failed("ftruncate");
  if (::fcntl(memory->fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return failed("F_ADD_SEALS");
  if (bytes == 0) return memory;
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd_, 0);
  if (base == MAP_FAILED) return failed("mmap");
  memory->base_ = static_cast<std::byte*>(base);
  memory->size_ = bytes;
  return memory;
}

SharedMemory::~SharedMemory() {
  if (base_ != nullptr) ::munmap(base_, size_);
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace kb::cpu
