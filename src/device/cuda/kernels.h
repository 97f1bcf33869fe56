// The small kernels: signals to the host, guard bands, junk for the caches, stress inputs. All are
// enqueued on a stream; what is returned is the launch's own result.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/stress.h"
#include "device/tensor.h"

namespace kb::cuda {

// Words lie in pinned memory of the host, and are written by one side only.

/// Runs until `*stop` has reached `value`, or for `limit_ns`. Writes `value` to `started` when it
/// has come to run, and in the end the longest time in which it did not run, in nanoseconds, to
/// `longest_gap`, and `value` to `ended`.
struct Watch {
  const std::uint64_t* stop;
  std::uint64_t* started;
  std::uint64_t* longest_gap;
  std::uint64_t* ended;
};
cudaError_t launch_watch(const Watch& words, std::uint64_t value, std::uint64_t limit_ns,
                         cudaStream_t stream);
/// Writes `value` to `word` at once, and runs until `*release` has reached it, or for `limit_ns`.
cudaError_t launch_closing(std::uint64_t* word, const std::uint64_t* release, std::uint64_t value,
                           std::uint64_t limit_ns, cudaStream_t stream);
/// Writes `value` to `word` after `cycles` cycles of the multiprocessor.
cudaError_t launch_delayed_signal(std::uint64_t cycles, std::uint64_t* word, std::uint64_t value,
                                  cudaStream_t stream);

/// Copies, and fills with `byte`. Any alignment; fast where both addresses are multiples of 16. By
/// kernels of our own, which never wait for another stream: what the runtime does may.
cudaError_t launch_copy(std::byte* to, const std::byte* from, std::size_t bytes,
                        cudaStream_t stream);
cudaError_t launch_fill(std::byte* memory, std::size_t bytes, unsigned char byte,
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
