// The first page of the control memory (docs/protocol.md, "Doorbell page"), shared by the judge and
// the native worker. The worker can write all of it: the judge reads `done` and `status` only, and
// believes neither.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace kb::worker {

inline constexpr std::uint32_t kMaxCalls = 256;

enum class Command : std::uint32_t { prepare = 1, run = 2, leave = 3, lock = 4 };

struct Doorbell {
  std::atomic<std::uint32_t> go;  // 0
  std::array<std::byte, 60> pad0;
  std::atomic<std::uint32_t> done;  // 64
  std::array<std::byte, 60> pad1;
  std::uint32_t command;    // 128
  std::uint32_t num_calls;  // 132
  std::uint32_t reseed;     // 136
  std::array<std::byte, 52> pad2;
  std::uint32_t status;  // 192
  std::array<std::byte, 60> pad3;
  std::array<std::uint32_t, kMaxCalls> slot;       // 256
  std::array<std::uint64_t, kMaxCalls> call_seed;  // 1280
};
static_assert(offsetof(Doorbell, done) == 64 && offsetof(Doorbell, command) == 128);
static_assert(offsetof(Doorbell, status) == 192 && offsetof(Doorbell, slot) == 256);
static_assert(offsetof(Doorbell, call_seed) == 1280 && sizeof(Doorbell) <= 4096);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// Sleeps until `*word != seen`, a wake-up, a signal or `limit_ns` (negative: no limit).
void futex_wait(std::atomic<std::uint32_t>* word, std::uint32_t seen, std::int64_t limit_ns);
void futex_wake(std::atomic<std::uint32_t>* word);

}  // namespace kb::worker
