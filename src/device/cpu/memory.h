// Bulk memory work around a turn: copy, compare bytes, poison, guard bands, cache flush. All run on
// the pool at memory speed and are finished when they return. Call copy and equal as cpu::copy and
// cpu::equal: with containers for arguments the bare names are std's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/cpu/thread_pool.h"

namespace kb::cpu {

void copy(std::span<std::byte> to, std::span<const std::byte> from, ThreadPool& pool);
/// True when all bytes agree; the spans have equal size.
bool equal(std::span<const std::byte> a, std::span<const std::byte> b, ThreadPool& pool);
/// Fills with 0xFF: a NaN in every floating type, -1 in the signed integers.
void poison(std::span<std::byte> memory, ThreadPool& pool);
/// Writes the guard pattern (a function of `secret` and of the place in the band).
void write_guard(std::span<std::byte> band, std::uint64_t secret);
/// False when a byte of the band is not what write_guard(band, secret) wrote.
bool guard_intact(std::span<const std::byte> band, std::uint64_t secret);

/// Bytes of all last-level caches that this process's CPUs reach, from sysfs, at most 512 MiB;
/// 32 MiB when it says nothing.
std::size_t last_level_cache_bytes();

/// A private buffer of twice the last-level cache, or twice the cores' own caches where those are
/// more. flush() writes all of it on the pool, a part on each CPU that this process may use (the
/// threads move there and back), so that neither shared nor per-core caches hold anything of a
/// worker's. The pool must outlive it.
class CacheFlusher {
 public:
  CacheFlusher(std::size_t llc_bytes, ThreadPool& pool);
  ~CacheFlusher();
  CacheFlusher(const CacheFlusher&) = delete;
  CacheFlusher& operator=(const CacheFlusher&) = delete;
  void flush();
  std::size_t bytes() const { return bytes_; }
  /// The buffer itself: memory that is resident and far larger than the caches. Its contents mean
  /// nothing.
  std::span<std::byte> buffer() { return {buffer_, bytes_}; }

 private:
  std::byte* buffer_;
  std::size_t bytes_;
  std::size_t part_bytes_ = 0;
  std::vector<int> cpus_;  ///< part i is written on cpus_[i]; -1 anywhere
  ThreadPool& pool_;
};

}  // namespace kb::cpu
