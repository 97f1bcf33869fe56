#include "worker/arena.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace kb::worker {

std::expected<Arena, std::string> Arena::create(std::size_t bytes) {
  const auto failed = [&](const char* what) {
    return std::unexpected(fmt::format("cannot share {} MiB with a worker: {} failed: {}",
                                       bytes >> 20, what, std::strerror(errno)));
  };
  Arena arena;
  arena.fd_ = FileDescriptor(::memfd_create("kernelbench-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!arena.fd_) return failed("memfd_create");
  if (::ftruncate(arena.fd(), static_cast<off_t>(bytes)) != 0) return failed("ftruncate");
  if (::fcntl(arena.fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return failed("F_ADD_SEALS");
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena.fd(), 0);
  if (base == MAP_FAILED) return failed("mmap");
  arena.base_ = static_cast<std::byte*>(base);
  arena.size_ = bytes;
  return arena;
}

Arena::Arena(Arena&& other) noexcept
    : fd_(std::move(other.fd_)),
      base_(std::exchange(other.base_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  return *this;
}

Arena::~Arena() {
  if (base_) ::munmap(base_, size_);
}

}  // namespace kb::worker
