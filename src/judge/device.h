// The trusted side of the device "cpu": the judge's threads, its cache flusher, its random numbers.
// One judge uses it at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "device/cpu/memory.h"
#include "device/cpu/thread_pool.h"

namespace kb::judge {

/// 64 bits from getrandom(2): seeds that no candidate can foresee.
std::uint64_t secret_seed();

struct CpuDevice {
  cpu::ThreadPool pool;
  cpu::CacheFlusher flusher{cpu::last_level_cache_bytes(), pool};
};

}  // namespace kb::judge
