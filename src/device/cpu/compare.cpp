// The method. The tensor is cut into blocks, visited in a random order by the pool's threads; a
// block is cut into runs that stay in cache, each seen by the kernels of compare_run.h. Counts,
// maxima and the first violation are merged from one accumulator a thread; the sums of squares are
// kept for each block and added in row-major order at the end, so that the result has the same bits
// whatever the order and the number of threads.
#include "device/cpu/compare.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "device/cpu/compare_run.h"
#include "device/random.h"

namespace kb::cpu {
namespace {

/// Bytes of the wider side of a block: both sides, copied to scratch, fit in an L2 cache of 1 MiB,
/// and a jump to the next block costs little beside reading it.
constexpr std::size_t kBlockBytes = std::size_t{256} << 10;

struct alignas(64) ThreadTotals {
  Comparison counts;  ///< norms unused
  std::unique_ptr<std::byte[]> candidate_scratch, reference_scratch;
};

/// A random permutation of 0 … blocks - 1.
std::vector<std::uint32_t> random_order(std::size_t blocks, std::uint64_t seed) {
  std::vector<std::uint32_t> order(blocks);
  for (std::size_t i = 0; i < blocks; ++i) order[i] = static_cast<std::uint32_t>(i);
  for (std::size_t i = blocks; i > 1; --i) {
    auto bits = static_cast<std::uint32_t>(random_bits(seed, i) >> 32);
    std::swap(order[i - 1], order[random_below(bits, static_cast<std::uint32_t>(i))]);
  }
  return order;
}

/// Compares one block, of which `first` is the row-major index of the first element.
ExactSquares compare_block(const std::byte* candidate, const std::byte* reference,
                           std::size_t candidate_size, std::size_t reference_size,
                           std::size_t first, std::size_t elements, ElementTolerance tolerance,
                           const RunKernels& kernels, Comparison& totals) {
  ExactSquares squares;
  for (std::size_t done = 0; done < elements; done += kRunElements) {
    std::size_t n = std::min(kRunElements, elements - done);
    const std::byte* c = candidate + done * candidate_size;
    const std::byte* r = reference + done * reference_size;
    RunSummary run = kernels.screen(c, r, n, tolerance, totals.max_rel_error);
    if (run.look_again) run = kernels.inspect(c, r, n, tolerance);

    totals.max_abs_error = std::max(totals.max_abs_error, run.max_abs_error);
    totals.max_rel_error = std::max(totals.max_rel_error, run.max_rel_error);
    if (run.extreme) {
      ExactSquares exact = kernels.sum_squares_exactly(c, r, n);
      squares.error += exact.error;
      squares.reference += exact.reference;
    } else {
      squares.error += static_cast<long double>(run.error_squares);
      squares.reference += static_cast<long double>(run.reference_squares);
    }
    if (run.violations == 0) continue;
    totals.violations += run.violations;
    totals.nonfinite_mismatches += run.nonfinite_mismatches;
    auto start = static_cast<std::int64_t>(first + done);
    if (totals.first_violation < 0 || start < totals.first_violation) {
      std::size_t at = kernels.first_violation(c, r, n, tolerance);
      // Nothing found where a violation was counted: a worker that is not stopped writes to its
      // slot meanwhile. The violation stands, in this run.
      if (at == n) at = 0;
      totals.first_violation = start + static_cast<std::int64_t>(at);
      totals.candidate_at_first = kernels.candidate_value(c + at * candidate_size);
      totals.reference_at_first = kernels.reference_value(r + at * reference_size);
    }
  }
  return squares;
}

}  // namespace

Comparison compare(const BlockSource& candidate, const TensorSpec& spec,
                   const BlockSource& reference, DType reference_dtype, const Tolerance& tolerance,
                   std::uint64_t order_seed, ThreadPool& pool) {
  if (!(tolerance.atol >= 0) || !(tolerance.rtol >= 0) || !(tolerance.norm_rtol >= 0)) {
    throw std::invalid_argument("compare: a tolerance is negative or NaN");
  }
  const RunKernels kernels = run_kernels(spec.dtype, reference_dtype, widest_vector_unit());
  const ElementTolerance element_tolerance{tolerance.atol, tolerance.rtol};
  const std::size_t candidate_size = size_of(spec.dtype);
  const std::size_t reference_size = size_of(reference_dtype);
  const std::size_t elements = spec.bytes() / candidate_size;
  const std::size_t block_elements = kBlockBytes / std::max(candidate_size, reference_size);
  const std::size_t blocks = (elements + block_elements - 1) / block_elements;
  if (blocks > std::numeric_limits<std::uint32_t>::max()) {
    throw std::invalid_argument("compare: a tensor of over 2^32 blocks");
  }

  const std::vector<std::uint32_t> order = random_order(blocks, order_seed);
  std::vector<ExactSquares> squares(blocks);
  std::vector<ThreadTotals> threads(pool.size());
  std::atomic<bool> readable{true};
  pool.parallel_for(blocks, [&](std::size_t turn, unsigned thread) {
    if (!readable.load(std::memory_order_relaxed)) return;
    ThreadTotals& own = threads[thread];
    if (!own.candidate_scratch) {  // not touched, and so not paid for, unless a source copies
      own.candidate_scratch =
          std::make_unique_for_overwrite<std::byte[]>(block_elements * candidate_size);
      own.reference_scratch =
          std::make_unique_for_overwrite<std::byte[]>(block_elements * reference_size);
    }
    const std::size_t block = order[turn];
    const std::size_t first = block * block_elements;
    const std::size_t n = std::min(block_elements, elements - first);
    const std::byte* c =
        candidate.block(first * candidate_size, n * candidate_size, own.candidate_scratch.get());
    const std::byte* r =
        reference.block(first * reference_size, n * reference_size, own.reference_scratch.get());
    if (c == nullptr || r == nullptr) {
      readable.store(false, std::memory_order_relaxed);
      return;
    }
    squares[block] = compare_block(c, r, candidate_size, reference_size, first, n,
                                   element_tolerance, kernels, own.counts);
  });

  Comparison result;
  result.elements = static_cast<std::int64_t>(elements);
  result.readable = readable.load();
  if (!result.readable) return result;
  for (const ThreadTotals& thread : threads) {
    const Comparison& part = thread.counts;
    result.violations += part.violations;
    result.nonfinite_mismatches += part.nonfinite_mismatches;
    result.max_abs_error = std::max(result.max_abs_error, part.max_abs_error);
    result.max_rel_error = std::max(result.max_rel_error, part.max_rel_error);
    if (part.first_violation >= 0 &&
        (result.first_violation < 0 || part.first_violation < result.first_violation)) {
      result.first_violation = part.first_violation;
      result.candidate_at_first = part.candidate_at_first;
      result.reference_at_first = part.reference_at_first;
    }
  }
  ExactSquares total;
  for (const ExactSquares& block : squares) {
    total.error += block.error;
    total.reference += block.reference;
  }
  const long double error_norm = std::sqrt(total.error);
  const long double reference_norm = std::sqrt(total.reference);
  result.error_norm = static_cast<double>(error_norm);
  result.reference_norm = static_cast<double>(reference_norm);
  const bool norms_agree =
      std::isinf(tolerance.norm_rtol) ||
      error_norm <= static_cast<long double>(tolerance.norm_rtol) * reference_norm;
  result.within_tolerance = result.violations == 0 && norms_agree;
  return result;
}

}  // namespace kb::cpu
