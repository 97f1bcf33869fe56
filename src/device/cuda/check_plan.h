// The host's side of a check: lays the jobs out for the kernels in one pinned buffer.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/cuda/check.h"
#include "device/device.h"

namespace kb::cuda {

/// One check at a time: prepare, launch, let the stream finish, read.
class CheckQueue {
 public:
  CheckQueue() = default;
  ~CheckQueue();
  CheckQueue(const CheckQueue&) = delete;
  CheckQueue& operator=(const CheckQueue&) = delete;

  /// Finds out how many blocks the GPU holds, and allocates the first buffers.
  cudaError_t open(int multiprocessors);
  /// Waits for nothing, unless there are more jobs than ever before (a few hundred are expected).
  /// Throws std::invalid_argument for a job that makes no sense.
  cudaError_t prepare(CheckList list, std::uint64_t order_seed);
  /// Waits for nothing.
  cudaError_t launch(cudaStream_t stream);
  /// Once the stream has finished: fetches what only a failed comparison needs.
  cudaError_t finish(cudaStream_t stream, CheckResults& results);

 private:
  cudaError_t reserve(std::size_t bytes);

  unsigned most_blocks_ = 1;
  std::byte* host_ = nullptr;  ///< pinned; the same layout as on the device
  std::byte* device_ = nullptr;
  std::size_t capacity_ = 0;
  CheckList list_;
  CheckPlan plan_{};
  std::size_t totals_offset_ = 0, end_ = 0;  ///< in the buffers
};

}  // namespace kb::cuda
