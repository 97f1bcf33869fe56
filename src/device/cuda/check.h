// The check of a turn as one kernel: jobs of three sorts, cut into chunks that a grid of resident
// blocks takes one after another in a pseudo-random order.
//
// Comparison. Elements are screened in the cheapest arithmetic that can tell that there is nothing
// to report: float32 for tensors of up to 32 bits, else float64. Rounding is directed so that no
// violation passes. Where the screen is not sure (a violation, a tolerance almost met, a NaN or
// Inf, squares out of range, a relative error larger than the largest so far) the vector of 16
// bytes is inspected anew in float64, with the CPU's formulas. Counts and the first violation are
// therefore exact; the norms and the largest errors of float32 and narrower tensors are good to
// 1e-6, relatively.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kb::cuda {

enum class CheckKind : std::uint32_t {
  float64,  // the kinds of comparison: candidate and reference of one type, …
  float32,
  float16,
  bfloat16,
  int64,
  int32,
  int16,
  int8,
  uint8,
  float32_float64,  // … or a reference of float64
  float16_float64,
  bfloat16_float64,
  equal,  // bytes
  guard,  // bytes against a secret's pattern
};

inline constexpr int kMostDimensions = 8;

struct CheckJob {
  CheckKind kind;
  std::uint32_t vectors;           ///< both sides are dense and aligned to 16 bytes
  const unsigned char* candidate;  ///< or the band, or one side of `equal`
  const unsigned char* reference;
  std::uint64_t elements;
  std::uint64_t chunk_elements;  ///< a multiple of 2048
  double atol, rtol;
  std::uint64_t secret;
  std::uint64_t rank;  ///< 0: the candidate is dense
  std::uint64_t extents[kMostDimensions];
  std::int64_t strides[kMostDimensions];  ///< the candidate's, in elements
};

inline constexpr std::uint64_t kNoViolation = ~std::uint64_t{0};

/// What is known of a job. For `equal` and `guard` only whether there are violations.
struct JobTotals {
  std::uint64_t violations = 0;
  std::uint64_t nonfinite_mismatches = 0;
  std::uint64_t first_violation = kNoViolation;
  std::uint64_t max_abs_error = 0;  ///< the bits of a double, whose order is that of integers
  std::uint64_t max_rel_error = 0;
  /// Sums of squares; those of values over 2^480 are scaled by 2^-1200, those under 2^-480 by
  /// 2^1200, and kept apart.
  double error_squares = 0, error_squares_large = 0, error_squares_small = 0;
  double reference_squares = 0, reference_squares_large = 0, reference_squares_small = 0;
  double candidate_at_first = 0, reference_at_first = 0;  ///< from launch_fetch_first
};

/// Everything in device memory.
struct CheckPlan {
  std::uint32_t* taken;  ///< chunks given out so far; 0 at the start
  const CheckJob* jobs;
  const std::uint64_t* first_chunks;  ///< of each job, and at the end the number of chunks
  JobTotals* totals;
  std::uint32_t num_jobs;
  std::uint32_t num_chunks;
  /// The n-th chunk to be visited is (n * multiplier + offset) % num_chunks.
  std::uint32_t multiplier;
  std::uint32_t offset;
};

/// Blocks of the check that a multiprocessor holds.
cudaError_t check_blocks_per_multiprocessor(int& blocks);
/// Copies `bytes` bytes, a multiple of 16, from pinned memory of the host. By a kernel: a copy
/// engine would leave the multiprocessors to somebody else meanwhile.
cudaError_t launch_fetch_plan(std::byte* to, const std::byte* from, std::size_t bytes,
                              cudaStream_t stream);
cudaError_t launch_check(const CheckPlan& plan, unsigned blocks, cudaStream_t stream);
/// Fetches the two elements at the first violation of each comparison.
cudaError_t launch_fetch_first(const CheckPlan& plan, cudaStream_t stream);

}  // namespace kb::cuda
