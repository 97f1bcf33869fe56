// One streaming pass that compares a candidate's output with the expected one.
//
// The pass reads both sides once, and its memory is small beside the tensor: a block of scratch a
// thread and 36 bytes for each block of 256 KiB. It counts violations of |c - r| <= atol + rtol *
// |r| (torch.allclose's formula, with equal_nan: a NaN matches a NaN, an infinity the same
// infinity, and nothing else), finds the first one in row-major order, and sums what the norm-wise
// test ||c - r||_2 <= norm_rtol * ||r||_2 needs. Integers must be equal, and bools too as bytes
// (PyTorch writes 0 and 1; an output slot's 0xFF is no true). Arithmetic is float64, whatever the
// types; torch.allclose's is the tensors' own, so the two can differ where an error equals its
// tolerance to the last digits, or |c - r| overflows float32. Norms carry a relative error under
// 1e-12. The result has the same bits whatever the block order and the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/comparison.h"
#include "device/cpu/thread_pool.h"
#include "device/tensor.h"

namespace kb::cpu {

/// Where a dense row-major tensor's bytes come from: this process's memory, or another's.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  /// Bytes [offset, offset + size) of the tensor: a pointer into memory that stays valid until the
  /// next call from the same thread, or null if they cannot be read. May copy into `scratch` (which
  /// holds `size` bytes). Called from several threads at once.
  virtual const std::byte* block(std::size_t offset, std::size_t size,
                                 std::byte* scratch) const = 0;
};

class MemorySource final : public BlockSource {
 public:
  explicit MemorySource(const void* data) : data_(static_cast<const std::byte*>(data)) {}
  const std::byte* block(std::size_t offset, std::size_t, std::byte*) const override {
    return data_ + offset;
  }

 private:
  const std::byte* data_;
};

/// Compares `spec.numel()` elements. Both sources are dense row-major of spec.shape; the candidate
/// has spec.dtype, the reference `reference_dtype` (float64 for the truth; equal to spec.dtype
/// otherwise). Throws std::invalid_argument when neither both are floating nor both the same, or a
/// tolerance is negative or NaN. A reference of zeros only admits zeros only, unless norm_rtol is
/// infinity. `order_seed` decides the (secret) order in which blocks are visited; it does not
/// change the result.
Comparison compare(const BlockSource& candidate, const TensorSpec& spec,
                   const BlockSource& reference, DType reference_dtype, const Tolerance& tolerance,
                   std::uint64_t order_seed, ThreadPool& pool);

}  // namespace kb::cpu
