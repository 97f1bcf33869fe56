// The small kernels: signals to the host, guard bands, junk for the caches, stress inputs. All are
// enqueued on a stream; what is returned is the launch's own result.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/stress.h"
#include "device/tensor.h"

namespace kb::cuda {

/// Writes `value` to `word`, which lies in pinned memory of the host.
cudaError_t launch_signal(std::uint64_t* word, std::uint64_t value, cudaStream_t stream);
/// The same after `cycles` cycles of the multiprocessor.
cudaError_t launch_delayed_signal(std::uint64_t cycles, std::uint64_t* word, std::uint64_t value,
                                  cudaStream_t stream);

/// Word i of the pattern is random_bits(secret, i), as on the CPU. The band needs no alignment.
cudaError_t launch_guard(std::byte* band, std::size_t bytes, std::uint64_t secret,
                         cudaStream_t stream);

/// Writes `bytes` bytes, a multiple of 16 at an aligned address: other ones for each `round`.
cudaError_t launch_junk(std::byte* memory, std::size_t bytes, std::uint32_t round,
                        cudaStream_t stream);

/// The factors of Stress::heavy_tails, in device memory.
struct StressFactors {
  const float* narrow = nullptr;
  const double* wide = nullptr;  ///< for float64
};

/// The transforms of device/stress.h. `key` belongs to the seed and the kind; `data` is aligned to
/// its elements.
cudaError_t launch_stress(Stress kind, std::byte* data, std::uint64_t elements, DType dtype,
                          std::uint64_t key, const StressFactors& factors, cudaStream_t stream);

}  // namespace kb::cuda
