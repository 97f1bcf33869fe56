#include "device/cuda/check_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "device/random.h"

namespace kb::cuda {
namespace {

/// Enough for about 800 jobs.
constexpr std::size_t kFirstCapacity = std::size_t{256} << 10;

/// Bytes of a chunk, on the wider side. A check of less than the GPU's blocks at the largest size
/// gets smaller ones, so that all blocks have a few.
constexpr std::size_t kLeastChunkBytes = std::size_t{16} << 10;
constexpr std::size_t kMostChunkBytes = std::size_t{128} << 10;
constexpr std::size_t kChunksOfABlock = 4;

CheckKind kind_of(DType candidate, DType reference) {
  if (candidate == reference) {
    switch (candidate) {
      case DType::float64: return CheckKind::float64;
      case DType::float32: return CheckKind::float32;
      case DType::float16: return CheckKind::float16;
      case DType::bfloat16: return CheckKind::bfloat16;
      case DType::int64: return CheckKind::int64;
      case DType::int32: return CheckKind::int32;
      case DType::int16: return CheckKind::int16;
      case DType::int8: return CheckKind::int8;
      case DType::uint8:
      case DType::boolean: return CheckKind::uint8;
    }
  }
  if (reference == DType::float64) {
    if (candidate == DType::float32) return CheckKind::float32_float64;
    if (candidate == DType::float16) return CheckKind::float16_float64;
    if (candidate == DType::bfloat16) return CheckKind::bfloat16_float64;
  }
  throw std::invalid_argument("check: no comparison of these two types");
}

bool aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

/// Writes the candidate's shape and strides with as few dimensions as tell the same; none where the
/// elements lie in row-major order without gaps.
void set_strides(CheckJob& job, const TensorSpec& spec, const std::vector<std::int64_t>& strides) {
  job.rank = 0;
  if (strides.empty()) return;
  if (strides.size() != spec.shape.size())
    throw std::invalid_argument("check: not a stride for each dimension");
  std::uint64_t rank = 0;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    if (strides[i] < 0) throw std::invalid_argument("check: a stride is negative");
    const auto extent = static_cast<std::uint64_t>(spec.shape[i]);
    if (extent == 1) continue;
    if (rank > 0 && static_cast<std::uint64_t>(job.strides[rank - 1]) ==
                        static_cast<std::uint64_t>(strides[i]) * extent) {
      job.extents[rank - 1] *= extent;
      job.strides[rank - 1] = strides[i];
      continue;
    }
    if (rank == kMostDimensions)
      throw std::invalid_argument("check: a strided tensor of over 8 dimensions");
    job.extents[rank] = extent;
    job.strides[rank] = strides[i];
    ++rank;
  }
  const bool dense = rank == 0 || (rank == 1 && job.strides[0] == 1);
  job.rank = dense ? 0 : rank;
}

CheckJob to_job(const CompareJob& compare) {
  const Tolerance& tolerance = compare.tolerance;
  if (!(tolerance.atol >= 0) || !(tolerance.rtol >= 0) || !(tolerance.norm_rtol >= 0))
    throw std::invalid_argument("check: a tolerance is negative or NaN");
  CheckJob job{};
  job.kind = kind_of(compare.spec.dtype, compare.reference_dtype);
  job.candidate = reinterpret_cast<const unsigned char*>(compare.candidate.data);
  job.reference = reinterpret_cast<const unsigned char*>(compare.reference);
  job.elements = compare.spec.bytes() / size_of(compare.spec.dtype);
  if (job.elements == 0) return job;
  if (job.candidate == nullptr || job.reference == nullptr)
    throw std::invalid_argument("check: a tensor that is not in this GPU's memory");
  job.atol = tolerance.atol;
  job.rtol = tolerance.rtol;
  set_strides(job, compare.spec, compare.candidate.strides);
  job.vectors = job.rank == 0 && aligned(job.candidate) && aligned(job.reference) ? 1 : 0;
  return job;
}

CheckJob to_job(const EqualJob& equal) {
  if (equal.a.size() != equal.b.size())
    throw std::invalid_argument("check: spans of different size");
  CheckJob job{};
  job.kind = CheckKind::equal;
  job.candidate = reinterpret_cast<const unsigned char*>(equal.a.data());
  job.reference = reinterpret_cast<const unsigned char*>(equal.b.data());
  job.elements = equal.a.size();
  return job;
}

CheckJob to_job(const GuardJob& guard) {
  CheckJob job{};
  job.kind = CheckKind::guard;
  job.candidate = reinterpret_cast<const unsigned char*>(guard.band.data());
  job.elements = guard.band.size();
  job.secret = guard.secret;
  return job;
}

/// Calls `visit(job, bytes of an element on the wider side)` for each job, in the order in which
/// the results are read.
template <class Visit>
void for_each_job(const CheckList& list, const Visit& visit) {
  for (const CompareJob& job : list.compare)
    visit(to_job(job), std::max(size_of(job.spec.dtype), size_of(job.reference_dtype)));
  for (const EqualJob& job : list.equal) visit(to_job(job), 1);
  for (const GuardJob& job : list.guards) visit(to_job(job), 1);
}

/// x * y mod `chunks` visits all chunks when x has no factor in common with their number.
std::uint32_t random_multiplier(std::uint32_t chunks, std::uint64_t seed) {
  for (std::uint64_t i = 1;; ++i) {
    const auto bits = static_cast<std::uint32_t>(random_bits(seed, i) >> 32);
    const std::uint32_t multiplier = random_below(bits, chunks);
    if (std::gcd(multiplier, chunks) == 1) return multiplier;
  }
}

/// The root of a sum kept in three parts (see JobTotals).
long double norm(double middle, double large, double small) {
  return std::sqrt(static_cast<long double>(middle) +
                   std::ldexp(static_cast<long double>(large), 1200) +
                   std::ldexp(static_cast<long double>(small), -1200));
}

Comparison to_comparison(const CompareJob& job, const JobTotals& totals) {
  Comparison result;
  result.elements = job.spec.numel();
  result.violations = static_cast<std::int64_t>(totals.violations);
  result.nonfinite_mismatches = static_cast<std::int64_t>(totals.nonfinite_mismatches);
  if (totals.first_violation != kNoViolation) {
    result.first_violation = static_cast<std::int64_t>(totals.first_violation);
    result.candidate_at_first = totals.candidate_at_first;
    result.reference_at_first = totals.reference_at_first;
  }
  result.max_abs_error = std::bit_cast<double>(totals.max_abs_error);
  result.max_rel_error = std::bit_cast<double>(totals.max_rel_error);
  const long double error =
      norm(totals.error_squares, totals.error_squares_large, totals.error_squares_small);
  const long double reference = norm(totals.reference_squares, totals.reference_squares_large,
                                     totals.reference_squares_small);
  result.error_norm = static_cast<double>(error);
  result.reference_norm = static_cast<double>(reference);
  const double limit = job.tolerance.norm_rtol;
  result.within_tolerance =
      result.violations == 0 &&
      (std::isinf(limit) || error <= static_cast<long double>(limit) * reference);
  return result;
}

template <class T>
std::size_t space_for(std::size_t count) {
  return (count * sizeof(T) + 15) / 16 * 16;
}

}  // namespace

CheckQueue::~CheckQueue() {
  cudaFreeHost(host_);
  cudaFree(device_);
}

cudaError_t CheckQueue::open(int multiprocessors) {
  int blocks = 0;
  if (cudaError_t error = check_blocks_per_multiprocessor(blocks); error != cudaSuccess)
    return error;
  most_blocks_ = static_cast<unsigned>(std::max(1, blocks * multiprocessors));
  return reserve(kFirstCapacity);
}

cudaError_t CheckQueue::reserve(std::size_t bytes) {
  if (bytes <= capacity_) return cudaSuccess;
  // Both wait for what still uses the buffers.
  cudaFreeHost(std::exchange(host_, nullptr));
  cudaFree(std::exchange(device_, nullptr));
  capacity_ = 0;
  const std::size_t capacity = std::bit_ceil(bytes);
  void* memory = nullptr;
  if (cudaError_t error = cudaMallocHost(&memory, capacity); error != cudaSuccess) return error;
  host_ = static_cast<std::byte*>(memory);
  if (cudaError_t error = cudaMalloc(&memory, capacity); error != cudaSuccess) return error;
  device_ = static_cast<std::byte*>(memory);
  capacity_ = capacity;
  return cudaSuccess;
}

cudaError_t CheckQueue::prepare(CheckList list, std::uint64_t order_seed) {
  list_ = std::move(list);
  const std::size_t count = list_.compare.size() + list_.equal.size() + list_.guards.size();
  // The counter, the jobs, their first chunks, and the totals, each aligned to 16 bytes.
  const std::size_t jobs_offset = 16;
  const std::size_t chunks_offset = jobs_offset + space_for<CheckJob>(count);
  totals_offset_ = chunks_offset + space_for<std::uint64_t>(count + 1);
  end_ = totals_offset_ + space_for<JobTotals>(count);
  if (cudaError_t error = reserve(end_); error != cudaSuccess) return error;

  auto* const jobs = reinterpret_cast<CheckJob*>(host_ + jobs_offset);
  auto* const first_chunks = reinterpret_cast<std::uint64_t*>(host_ + chunks_offset);
  auto* const totals = reinterpret_cast<JobTotals*>(host_ + totals_offset_);
  *reinterpret_cast<std::uint64_t*>(host_) = 0;
  std::size_t bytes = 0;
  std::size_t i = 0;
  for_each_job(list_, [&](const CheckJob& job, std::size_t element_bytes) {
    bytes += job.elements * element_bytes;
    jobs[i] = job;
    // For the moment; divided below.
    jobs[i].chunk_elements = element_bytes;
    totals[i] = JobTotals();
    ++i;
  });
  const std::size_t chunk_bytes = std::bit_floor(
      std::clamp(bytes / (most_blocks_ * kChunksOfABlock), kLeastChunkBytes, kMostChunkBytes));
  std::uint64_t chunks = 0;
  for (i = 0; i < count; ++i) {
    jobs[i].chunk_elements = chunk_bytes / jobs[i].chunk_elements;
    first_chunks[i] = chunks;
    chunks += (jobs[i].elements + jobs[i].chunk_elements - 1) / jobs[i].chunk_elements;
  }
  first_chunks[count] = chunks;
  // The counter goes past the end by one for each block.
  if (chunks > std::numeric_limits<std::uint32_t>::max() / 2)
    throw std::invalid_argument("check: over 2^31 chunks");

  plan_ = {};
  plan_.taken = reinterpret_cast<std::uint32_t*>(device_);
  plan_.jobs = reinterpret_cast<const CheckJob*>(device_ + jobs_offset);
  plan_.first_chunks = reinterpret_cast<const std::uint64_t*>(device_ + chunks_offset);
  plan_.totals = reinterpret_cast<JobTotals*>(device_ + totals_offset_);
  plan_.num_jobs = static_cast<std::uint32_t>(count);
  plan_.num_chunks = static_cast<std::uint32_t>(chunks);
  if (chunks == 0) return cudaSuccess;
  plan_.multiplier = random_multiplier(plan_.num_chunks, order_seed);
  plan_.offset =
      random_below(static_cast<std::uint32_t>(random_bits(order_seed, 0) >> 32), plan_.num_chunks);
  return cudaSuccess;
}

cudaError_t CheckQueue::launch(cudaStream_t stream) {
  if (plan_.num_chunks == 0) return cudaSuccess;
  cudaError_t error = launch_fetch_plan(device_, host_, end_, stream);
  if (error != cudaSuccess) return error;
  error = launch_check(plan_, std::min(most_blocks_, plan_.num_chunks), stream);
  if (error != cudaSuccess) return error;
  return cudaMemcpyAsync(host_ + totals_offset_, device_ + totals_offset_, end_ - totals_offset_,
                         cudaMemcpyDeviceToHost, stream);
}

cudaError_t CheckQueue::finish(cudaStream_t stream, CheckResults& results) {
  const auto* const totals = reinterpret_cast<const JobTotals*>(host_ + totals_offset_);
  const std::size_t comparisons = list_.compare.size();
  const bool violations = std::any_of(totals, totals + comparisons,
                                      [](const JobTotals& job) { return job.violations != 0; });
  if (violations) {
    cudaError_t error = launch_fetch_first(plan_, stream);
    if (error != cudaSuccess) return error;
    error = cudaMemcpyAsync(host_ + totals_offset_, device_ + totals_offset_,
                            comparisons * sizeof(JobTotals), cudaMemcpyDeviceToHost, stream);
    if (error != cudaSuccess) return error;
    error = cudaStreamSynchronize(stream);
    if (error != cudaSuccess) return error;
  }

  std::size_t i = 0;
  for (const CompareJob& job : list_.compare)
    results.compare.push_back(to_comparison(job, totals[i++]));
  for (std::size_t k = 0; k < list_.equal.size(); ++k)
    results.equal.push_back(totals[i++].violations == 0);
  for (std::size_t k = 0; k < list_.guards.size(); ++k)
    results.guards_intact.push_back(totals[i++].violations == 0);
  list_ = {};
  return cudaSuccess;
}

}  // namespace kb::cuda
