// The transforms of device/stress.h on the judge's own threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/cpu/thread_pool.h"
#include "device/stress.h"
#include "device/tensor.h"

namespace kb::cpu {

/// Transforms a dense floating tensor in place; a tensor of integers or bools is left as it is.
/// The random choices are a function of `seed` alone (counter-based, independent of the number of
/// threads).
void apply_stress(Stress kind, std::span<std::byte> data, DType dtype, std::uint64_t seed,
                  ThreadPool& pool);

}  // namespace kb::cpu
