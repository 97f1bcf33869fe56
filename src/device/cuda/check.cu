#include <cuda_fp16.h>

#include <cfloat>
#include <type_traits>

#include "device/cuda/check.h"
#include "device/random.h"

namespace kb::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / 32;

// ---- element types ------------------------------------------------------------------------------
// Each reads element `i` of words that hold a vector. With constant `i` all that is left is a
// shift.

struct F64 {
  static constexpr unsigned kSize = 8;
  static constexpr bool kFloating = true;
  static __device__ double value(const std::uint32_t* words, unsigned i) {
    return __hiloint2double(static_cast<int>(words[2 * i + 1]), static_cast<int>(words[2 * i]));
  }
};
struct F32 {
  static constexpr unsigned kSize = 4;
  static constexpr bool kFloating = true;
  static __device__ float value(const std::uint32_t* words, unsigned i) {
    return __uint_as_float(words[i]);
  }
};
struct F16 {
  static constexpr unsigned kSize = 2;
  static constexpr bool kFloating = true;
  static __device__ float value(const std::uint32_t* words, unsigned i) {
    return __half2float(
        __ushort_as_half(static_cast<unsigned short>(words[i / 2] >> (16 * (i % 2)))));
  }
};
struct BF16 {
  static constexpr unsigned kSize = 2;
  static constexpr bool kFloating = true;
  static __device__ float value(const std::uint32_t* words, unsigned i) {
    return __uint_as_float(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000U);
  }
};
struct I64 {
  static constexpr unsigned kSize = 8;
  static constexpr bool kFloating = false;
  static __device__ long long value(const std::uint32_t* words, unsigned i) {
    return static_cast<long long>(std::uint64_t{words[2 * i + 1]} << 32 | words[2 * i]);
  }
};
struct I32 {
  static constexpr unsigned kSize = 4;
  static constexpr bool kFloating = false;
  static __device__ int value(const std::uint32_t* words, unsigned i) {
    return static_cast<int>(words[i]);
  }
};
struct I16 {
  static constexpr unsigned kSize = 2;
  static constexpr bool kFloating = false;
  static __device__ int value(const std::uint32_t* words, unsigned i) {
    return static_cast<short>(words[i / 2] >> (16 * (i % 2)));
  }
};
struct I8 {
  static constexpr unsigned kSize = 1;
  static constexpr bool kFloating = false;
  static __device__ int value(const std::uint32_t* words, unsigned i) {
    return static_cast<signed char>(words[i / 4] >> (8 * (i % 4)));
  }
};
struct U8 {
  static constexpr unsigned kSize = 1;
  static constexpr bool kFloating = false;
  static __device__ int value(const std::uint32_t* words, unsigned i) {
    return static_cast<unsigned char>(words[i / 4] >> (8 * (i % 4)));
  }
};

/// All bits but the signs, in the words of a floating type.
template <class T>
constexpr __device__ std::uint32_t magnitude_mask(unsigned word) {
  if (T::kSize == 2) return 0x7fff7fffU;
  if (T::kSize == 4) return 0x7fffffffU;
  return word % 2 == 1 ? 0x7fffffffU : 0xffffffffU;
}

// ---- loading ------------------------------------------------------------------------------------

template <unsigned kWords>
struct Words {
  std::uint32_t word[kWords];
};

template <unsigned kWords>
__device__ __forceinline__ Words<kWords> load(const unsigned char* from) {
  static_assert(kWords % 4 == 0);
  Words<kWords> result;
#pragma unroll
  for (unsigned i = 0; i < kWords / 4; ++i) {
    // Read once: not to be kept in the caches.
    const uint4 quarter = __ldcs(reinterpret_cast<const uint4*>(from) + i);
    result.word[4 * i] = quarter.x;
    result.word[4 * i + 1] = quarter.y;
    result.word[4 * i + 2] = quarter.z;
    result.word[4 * i + 3] = quarter.w;
  }
  return result;
}

template <unsigned kSize>
__device__ std::uint64_t load_element(const unsigned char* from) {
  if (reinterpret_cast<std::uintptr_t>(from) % kSize == 0) {
    if constexpr (kSize == 8) return *reinterpret_cast<const std::uint64_t*>(from);
    if constexpr (kSize == 4) return *reinterpret_cast<const std::uint32_t*>(from);
    if constexpr (kSize == 2) return *reinterpret_cast<const std::uint16_t*>(from);
    if constexpr (kSize == 1) return *from;
  }
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < kSize; ++i) bits |= std::uint64_t{from[i]} << (8 * i);
  return bits;
}

/// Where the candidate's element of row-major index `index` lies, in elements.
__device__ std::uint64_t place_of(const CheckJob& job, std::uint64_t index) {
  if (job.rank == 0) return index;
  std::uint64_t place = 0;
  if (job.elements <= 0xffffffffU) {  // so no extent is larger either, and 32-bit division does
    auto rest = static_cast<std::uint32_t>(index);
    for (auto k = static_cast<int>(job.rank) - 1; k > 0; --k) {
      const auto extent = static_cast<std::uint32_t>(job.extents[k]);
      const std::uint32_t quotient = rest / extent;
      place += std::uint64_t{rest - quotient * extent} * static_cast<std::uint64_t>(job.strides[k]);
      rest = quotient;
    }
    return place + std::uint64_t{rest} * static_cast<std::uint64_t>(job.strides[0]);
  }
  for (auto k = static_cast<int>(job.rank) - 1; k > 0; --k) {
    const std::uint64_t quotient = index / job.extents[k];
    place += (index - quotient * job.extents[k]) * static_cast<std::uint64_t>(job.strides[k]);
    index = quotient;
  }
  return place + index * static_cast<std::uint64_t>(job.strides[0]);
}

/// `count` elements from row-major index `first` on, one by one; behind them zeros.
template <unsigned kSize, unsigned kWords, bool kCandidate>
__device__ __noinline__ Words<kWords> gather(const CheckJob& job, std::uint64_t first,
                                             unsigned count) {
  Words<kWords> result = {};
  for (unsigned i = 0; i < count; ++i) {
    const unsigned char* from = kCandidate ? job.candidate + place_of(job, first + i) * kSize
                                           : job.reference + (first + i) * kSize;
    const std::uint64_t bits = load_element<kSize>(from);
    if constexpr (kSize == 8) {
      result.word[2 * i] = static_cast<std::uint32_t>(bits);
      result.word[2 * i + 1] = static_cast<std::uint32_t>(bits >> 32);
    } else {
      const unsigned byte = i * kSize;
      result.word[byte / 4] |= static_cast<std::uint32_t>(bits) << (8 * (byte % 4));
    }
  }
  return result;
}

// ---- what a block has found in the job at hand --------------------------------------------------

/// In shared memory. Only inspected vectors write here.
struct BlockTotals {
  unsigned long long first_violation;
  unsigned long long max_abs_error;  ///< the bits of a double, as the next
  unsigned long long max_rel_error;
  unsigned violations;
  unsigned nonfinite_mismatches;
};

/// Squares that leave the range of float64 where they are not scaled: see JobTotals.
struct Extremes {
  double large, small;
};

/// A thread's own. No member has an initialiser, for it also lies in shared memory.
struct ThreadSums {
  double error_squares;
  double reference_squares;
  double max_abs_error;
  Extremes error, reference;  ///< touched by inspections only
};

__device__ unsigned long long bits_of(double x) {
  return static_cast<unsigned long long>(__double_as_longlong(x));
}
__device__ double double_of(unsigned long long bits) {
  return __longlong_as_double(static_cast<long long>(bits));
}
__device__ unsigned long long* atomic_word(std::uint64_t* word) {
  return reinterpret_cast<unsigned long long*>(word);
}
__device__ unsigned long long current(const unsigned long long& word) {
  return *const_cast<const volatile unsigned long long*>(&word);
}

/// Atomic, and without an operation where it would change nothing.
__device__ void raise(unsigned long long& word, unsigned long long to) {
  if (to > current(word)) atomicMax(&word, to);
}

// ---- inspection ---------------------------------------------------------------------------------

struct Squares {
  double error, reference;
};

/// x^2, unless that would leave the range of float64: then it goes to the other two sums.
__device__ double square_in_range(double x, Extremes& extremes) {
  if (x > 0x1p480) {
    extremes.large += (x * 0x1p-600) * (x * 0x1p-600);
    return 0;
  }
  if (x < 0x1p-480 && x != 0) {
    extremes.small += (x * 0x1p600) * (x * 0x1p600);
    return 0;
  }
  return x * x;
}

/// Everything about one vector, of which `index` is the first element, with the CPU's formulas. By
/// value, so that the caller's registers stay registers.
template <class C, class R, unsigned kReferenceWords>
__device__ __noinline__ Squares inspect(Words<4> c, Words<kReferenceWords> r, const CheckJob& job,
                                        ThreadSums& rare, std::uint64_t index, BlockTotals& block) {
  constexpr unsigned kElements = 16 / C::kSize;
  constexpr bool kWide = C::kFloating && R::kSize == 8;
  Squares squares{0, 0};
  double max_abs = 0, max_rel = 0;
  unsigned violations = 0, nonfinite = 0, first = kElements;
#pragma unroll 1
  for (unsigned i = 0; i < kElements; ++i) {
    const auto c_value = C::value(c.word, i);
    const auto r_value = R::value(r.word, i);
    const auto x = static_cast<double>(c_value);
    const auto y = static_cast<double>(r_value);
    const double magnitude = fabs(y);
    const bool finite = fabs(x) <= DBL_MAX && magnitude <= DBL_MAX;
    bool violates;
    if constexpr (C::kFloating) {
      const double gap = fabs(x - y);
      const bool same = x == y || (x != x && y != y);
      violates = !(same || (gap <= DBL_MAX && gap <= job.atol + job.rtol * magnitude));
    } else {
      violates = c_value != r_value;
    }
    if (violates) {
      if (violations == 0) first = i;
      ++violations;
      if (!finite) ++nonfinite;
    }
    if (!finite) continue;
    const double error = fabs(x - y);
    max_abs = error > max_abs ? error : max_abs;
    if (magnitude != 0) {
      const double relative = error / magnitude;
      max_rel = relative > max_rel ? relative : max_rel;
    }
    if constexpr (kWide) {
      if (error <= DBL_MAX) {
        squares.error += square_in_range(error, rare.error);
      } else {  // the difference of two finite numbers overflowed, but not that of their parts
        const double scaled = x * 0x1p-600 - y * 0x1p-600;
        rare.error.large += scaled * scaled;
      }
      squares.reference += square_in_range(magnitude, rare.reference);
    } else {
      squares.error += error * error;
      squares.reference += magnitude * magnitude;
    }
  }
  raise(block.max_abs_error, bits_of(max_abs));
  raise(block.max_rel_error, bits_of(max_rel));
  if (violations != 0) {
    atomicAdd(&block.violations, violations);
    if (nonfinite != 0) atomicAdd(&block.nonfinite_mismatches, nonfinite);
    if (index + first < current(block.first_violation))
      atomicMin(&block.first_violation, static_cast<unsigned long long>(index + first));
  }
  return squares;
}

// ---- screening ----------------------------------------------------------------------------------

/// The larger one; `known` where `x` is NaN.
__device__ float larger(float x, float known) {
  return fmaxf(x, known);
}
__device__ double larger(double x, double known) {
  return x > known ? x : known;  // fmax is three operations more
}

/// What differs between the two arithmetics. kSure: the part of a tolerance that is sure to be met
/// by an error that is computed with one rounding. Sums of squares between kLeast and kMost are
/// good; below, squares of parts may have been lost.
template <class A>
struct Screen;
template <>
struct Screen<float> {
  static constexpr double kSure = 1 - 0x1p-22;
  static constexpr float kLeast = 0x1p-100F;
  static constexpr float kMost = FLT_MAX;
  static __device__ float round_down(double x) { return __double2float_rd(x); }
  static __device__ float bound(float rtol, float magnitude, float atol) {
    return __fmaf_rd(rtol, magnitude, atol);
  }
};
template <>
struct Screen<double> {
  static constexpr double kSure = 1 - 0x1p-50;
  static constexpr double kLeast = 0x1p-900;
  static constexpr double kMost = 0x1p960;
  static __device__ double round_down(double x) { return x; }
  static __device__ double bound(double rtol, double magnitude, double atol) {
    return __fma_rd(rtol, magnitude, atol);
  }
};

/// A relative error up to this one is no news. A little over the record, or equal errors (there are
/// many among 16-bit numbers) would be taken for new ones.
template <class A>
__device__ A known_relative_error(unsigned long long record) {
  constexpr double kMost = std::is_same_v<A, float> ? double{FLT_MAX} : DBL_MAX;
  const double known = double_of(record) * (1 + 0x1p-20);
  return static_cast<A>(known < kMost ? known : kMost);
}

/// One vector of floating elements: sums, or everything if there is something to report.
template <class A, class C, class R, unsigned kReferenceWords>
__device__ __forceinline__ void examine(const Words<4>& c, const Words<kReferenceWords>& r,
                                        const CheckJob& job, ThreadSums& rare, std::uint64_t index,
                                        BlockTotals& block, A atol, A rtol, A known,
                                        ThreadSums& sums, A& max_abs) {
  constexpr unsigned kElements = 16 / C::kSize;
  A error_squares = 0, reference_squares = 0, largest = 0;
  bool sure = true;
#pragma unroll
  for (unsigned i = 0; i < kElements; ++i) {
    const auto x = static_cast<A>(C::value(c.word, i));
    const auto y = static_cast<A>(R::value(r.word, i));
    const A difference = x - y;
    const A gap = fabs(difference);
    const A magnitude = fabs(y);
    // A NaN is in neither relation.
    sure &= gap <= Screen<A>::bound(rtol, magnitude, atol);
    sure &= gap <= known * magnitude;
    error_squares += difference * difference;
    reference_squares += y * y;
    largest = larger(gap, largest);
  }
  std::uint32_t nonzero = 0;
#pragma unroll
  for (unsigned i = 0; i < kReferenceWords; ++i) nonzero |= r.word[i] & magnitude_mask<R>(i);
  // Infinite numbers, whose gap may meet an infinite tolerance, have no finite square.
  const bool in_range = error_squares <= Screen<A>::kMost &&
                        reference_squares <= Screen<A>::kMost &&
                        (error_squares >= Screen<A>::kLeast || largest == 0) &&
                        (reference_squares >= Screen<A>::kLeast || nonzero == 0);
  if (sure && in_range) {
    sums.error_squares += static_cast<double>(error_squares);
    sums.reference_squares += static_cast<double>(reference_squares);
    max_abs = larger(largest, max_abs);
    return;
  }
  const Squares squares = inspect<C, R, kReferenceWords>(c, r, job, rare, index, block);
  sums.error_squares += squares.error;
  sums.reference_squares += squares.reference;
}

/// One vector of integers.
template <class C>
__device__ __forceinline__ void examine_integers(const Words<4>& c, const Words<4>& r,
                                                 const CheckJob& job, ThreadSums& rare,
                                                 std::uint64_t index, BlockTotals& block,
                                                 ThreadSums& sums) {
  constexpr unsigned kElements = 16 / C::kSize;
  std::uint32_t differing = 0;
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) differing |= c.word[i] ^ r.word[i];
  float reference_squares = 0;
#pragma unroll
  for (unsigned i = 0; i < kElements; ++i) {
    const auto y = static_cast<float>(C::value(r.word, i));
    reference_squares += y * y;
  }
  if (differing == 0 && reference_squares <= FLT_MAX) {
    sums.reference_squares += static_cast<double>(reference_squares);
    return;
  }
  const Squares squares = inspect<C, C, 4>(c, r, job, rare, index, block);
  sums.error_squares += squares.error;
  sums.reference_squares += squares.reference;
}

/// Elements [first, first + elements) of a comparison, by the whole block.
template <class C, class R>
__device__ __noinline__ void compare_chunk(const CheckJob& job, std::uint64_t first,
                                           unsigned elements, BlockTotals& block,
                                           ThreadSums& all_sums) {
  using A = std::conditional_t<C::kSize == 8 || R::kSize == 8, double, float>;
  constexpr unsigned kElements = 16 / C::kSize;
  constexpr unsigned kReferenceBytes = kElements * R::kSize;
  constexpr unsigned kReferenceWords = kReferenceBytes / 4;
  // Vectors that a thread loads before it looks at one: enough bytes under way, few registers.
  constexpr unsigned kAtOnce = kReferenceWords > 4 ? 1 : 2;

  const unsigned vectors = (elements + kElements - 1) / kElements;
  const unsigned whole_vectors = job.vectors != 0 ? elements / kElements : 0;
  const unsigned char* const candidate = job.candidate + first * C::kSize;
  const unsigned char* const reference = job.reference + first * R::kSize;
  const A atol = Screen<A>::round_down(job.atol * Screen<A>::kSure);
  const A rtol = Screen<A>::round_down(job.rtol * Screen<A>::kSure);
  ThreadSums sums{};
  A max_abs = 0;
  auto examine_one = [&](unsigned at, const Words<4>& c, const Words<kReferenceWords>& r, A known) {
    const std::uint64_t index = first + at * kElements;
    if constexpr (C::kFloating) {
      examine<A, C, R, kReferenceWords>(c, r, job, all_sums, index, block, atol, rtol, known, sums,
                                        max_abs);
    } else {
      examine_integers<C>(c, r, job, all_sums, index, block, sums);
    }
  };

  unsigned at = threadIdx.x;
  for (; at + (kAtOnce - 1) * kThreads < whole_vectors; at += kAtOnce * kThreads) {
    Words<4> c[kAtOnce];
    Words<kReferenceWords> r[kAtOnce];
#pragma unroll
    for (unsigned u = 0; u < kAtOnce; ++u) {
      c[u] = load<4>(candidate + (at + u * kThreads) * 16);
      r[u] = load<kReferenceWords>(reference + (at + u * kThreads) * kReferenceBytes);
    }
    const A known = known_relative_error<A>(current(block.max_rel_error));
#pragma unroll
    for (unsigned u = 0; u < kAtOnce; ++u) examine_one(at + u * kThreads, c[u], r[u], known);
  }
#pragma unroll 1
  for (; at < vectors; at += kThreads) {
    const unsigned count = min(elements - at * kElements, kElements);
    const auto c = gather<C::kSize, 4, true>(job, first + at * kElements, count);
    const auto r = gather<R::kSize, kReferenceWords, false>(job, first + at * kElements, count);
    examine_one(at, c, r, known_relative_error<A>(current(block.max_rel_error)));
  }
  all_sums.error_squares += sums.error_squares;
  all_sums.reference_squares += sums.reference_squares;
  all_sums.max_abs_error = fmax(all_sums.max_abs_error, static_cast<double>(max_abs));
}

// ---- bytes --------------------------------------------------------------------------------------

__device__ bool differ(uint4 a, uint4 b) {
  return ((a.x ^ b.x) | (a.y ^ b.y) | (a.z ^ b.z) | (a.w ^ b.w)) != 0;
}
__device__ bool differ(std::uint32_t a, std::uint32_t b) {
  return a != b;
}
__device__ bool differ(unsigned char a, unsigned char b) {
  return a != b;
}

/// The words of type W in `bytes` bytes, which are aligned to it. Returns the bytes looked at.
template <class W>
__device__ unsigned differ_anywhere(const unsigned char* a, const unsigned char* b, unsigned bytes,
                                    bool& found) {
  const auto* const a_words = reinterpret_cast<const W*>(a);
  const auto* const b_words = reinterpret_cast<const W*>(b);
  const unsigned words = bytes / sizeof(W);
#pragma unroll 2
  for (unsigned i = threadIdx.x; i < words; i += kThreads)
    found |= differ(__ldcs(a_words + i), __ldcs(b_words + i));
  return words * static_cast<unsigned>(sizeof(W));
}

__device__ __noinline__ void equal_chunk(const CheckJob& job, std::uint64_t first, unsigned bytes,
                                         BlockTotals& block) {
  const unsigned char* const a = job.candidate + first;
  const unsigned char* const b = job.reference + first;
  const std::uintptr_t alignment =
      reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b);
  bool found = false;
  unsigned done = 0;
  if (alignment % sizeof(uint4) == 0) {
    done = differ_anywhere<uint4>(a, b, bytes, found);
  } else if (alignment % sizeof(std::uint32_t) == 0) {
    done = differ_anywhere<std::uint32_t>(a, b, bytes, found);
  }
  differ_anywhere<unsigned char>(a + done, b + done, bytes - done, found);
  if (found) atomicAdd(&block.violations, 1U);
}

__device__ __noinline__ void guard_chunk(const CheckJob& job, std::uint64_t first, unsigned bytes,
                                         BlockTotals& block) {
  bool found = false;
  for (unsigned i = threadIdx.x; i < bytes; i += kThreads) {
    const std::uint64_t at = first + i;
    const auto expected =
        static_cast<unsigned char>(random_bits(job.secret, at / 8) >> (8 * (at % 8)));
    found |= job.candidate[at] != expected;
  }
  if (found) atomicAdd(&block.violations, 1U);
}

// ---- the kernel ---------------------------------------------------------------------------------

__device__ void run_chunk(const CheckJob& job, std::uint64_t first, unsigned elements,
                          BlockTotals& block, ThreadSums& sums) {
  switch (job.kind) {
    case CheckKind::float64: return compare_chunk<F64, F64>(job, first, elements, block, sums);
    case CheckKind::float32: return compare_chunk<F32, F32>(job, first, elements, block, sums);
    case CheckKind::float16: return compare_chunk<F16, F16>(job, first, elements, block, sums);
    case CheckKind::bfloat16: return compare_chunk<BF16, BF16>(job, first, elements, block, sums);
    case CheckKind::int64: return compare_chunk<I64, I64>(job, first, elements, block, sums);
    case CheckKind::int32: return compare_chunk<I32, I32>(job, first, elements, block, sums);
    case CheckKind::int16: return compare_chunk<I16, I16>(job, first, elements, block, sums);
    case CheckKind::int8: return compare_chunk<I8, I8>(job, first, elements, block, sums);
    case CheckKind::uint8: return compare_chunk<U8, U8>(job, first, elements, block, sums);
    case CheckKind::float32_float64:
      return compare_chunk<F32, F64>(job, first, elements, block, sums);
    case CheckKind::float16_float64:
      return compare_chunk<F16, F64>(job, first, elements, block, sums);
    case CheckKind::bfloat16_float64:
      return compare_chunk<BF16, F64>(job, first, elements, block, sums);
    case CheckKind::equal: return equal_chunk(job, first, elements, block);
    case CheckKind::guard: return guard_chunk(job, first, elements, block);
  }
}

__device__ double warp_sum(double x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_down_sync(0xffffffffU, x, lanes);
  return x;
}
__device__ double warp_max(double x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x = fmax(x, __shfl_down_sync(0xffffffffU, x, lanes));
  return x;
}

/// Adds what the block has found to the job's totals. By all threads, after a barrier.
__device__ __noinline__ void hand_in(const BlockTotals& block, const ThreadSums& sums,
                                     JobTotals& totals, ThreadSums (&warps)[kWarps]) {
  const Extremes error{warp_sum(sums.error.large), warp_sum(sums.error.small)};
  const Extremes reference{warp_sum(sums.reference.large), warp_sum(sums.reference.small)};
  const ThreadSums own{warp_sum(sums.error_squares), warp_sum(sums.reference_squares),
                       warp_max(sums.max_abs_error), error, reference};
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x != 0) return;
  ThreadSums whole = warps[0];
  for (unsigned i = 1; i < kWarps; ++i) {
    whole.error_squares += warps[i].error_squares;
    whole.reference_squares += warps[i].reference_squares;
    whole.max_abs_error = fmax(whole.max_abs_error, warps[i].max_abs_error);
    whole.error.large += warps[i].error.large;
    whole.error.small += warps[i].error.small;
    whole.reference.large += warps[i].reference.large;
    whole.reference.small += warps[i].reference.small;
  }
  if (whole.error.large != 0) atomicAdd(&totals.error_squares_large, whole.error.large);
  if (whole.error.small != 0) atomicAdd(&totals.error_squares_small, whole.error.small);
  if (whole.reference.large != 0) atomicAdd(&totals.reference_squares_large, whole.reference.large);
  if (whole.reference.small != 0) atomicAdd(&totals.reference_squares_small, whole.reference.small);
  if (whole.error_squares != 0) atomicAdd(&totals.error_squares, whole.error_squares);
  if (whole.reference_squares != 0) atomicAdd(&totals.reference_squares, whole.reference_squares);
  const unsigned long long max_abs = max(bits_of(whole.max_abs_error), block.max_abs_error);
  if (max_abs != 0) atomicMax(atomic_word(&totals.max_abs_error), max_abs);
  if (block.max_rel_error != 0) atomicMax(atomic_word(&totals.max_rel_error), block.max_rel_error);
  if (block.violations == 0) return;
  atomicAdd(atomic_word(&totals.violations), std::uint64_t{block.violations});
  atomicAdd(atomic_word(&totals.nonfinite_mismatches), std::uint64_t{block.nonfinite_mismatches});
  atomicMin(atomic_word(&totals.first_violation), block.first_violation);
}

struct Task {
  std::uint32_t job;  ///< kNoJob when all chunks are given out
  std::uint64_t first;
  unsigned elements;
  unsigned long long max_rel_error;  ///< the largest that any block has handed in by now
};
constexpr std::uint32_t kNoJob = ~std::uint32_t{0};

__device__ void take_task(const CheckPlan& plan, Task& task) {
  task.job = kNoJob;
  const std::uint32_t turn = atomicAdd(plan.taken, 1U);
  if (turn >= plan.num_chunks) return;
  const std::uint64_t chunk =
      (std::uint64_t{turn} * plan.multiplier + plan.offset) % plan.num_chunks;
  // The last job that starts at or before the chunk: jobs without chunks are skipped.
  std::uint32_t low = 0, high = plan.num_jobs;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (plan.first_chunks[middle] <= chunk) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const CheckJob& job = plan.jobs[low];
  task.job = low;
  task.first = (chunk - plan.first_chunks[low]) * job.chunk_elements;
  task.elements = static_cast<unsigned>(min(job.chunk_elements, job.elements - task.first));
  task.max_rel_error = *const_cast<volatile std::uint64_t*>(&plan.totals[low].max_rel_error);
}

__global__ void __launch_bounds__(kThreads, 4) check(CheckPlan plan) {
  __shared__ BlockTotals block;
  __shared__ Task task;
  __shared__ ThreadSums warps[kWarps];
  ThreadSums sums{};
  std::uint32_t job = kNoJob;
  while (true) {
    __syncthreads();  // all have finished the chunk before
    if (threadIdx.x == 0) {
      // The records of relative error are shared early: who does not know of one inspects in vain.
      if (job != kNoJob && block.max_rel_error > task.max_rel_error)
        atomicMax(atomic_word(&plan.totals[job].max_rel_error), block.max_rel_error);
      take_task(plan, task);
      if (task.job == job && task.max_rel_error > block.max_rel_error)
        block.max_rel_error = task.max_rel_error;
    }
    __syncthreads();
    if (task.job == kNoJob) break;
    if (task.job != job) {
      if (job != kNoJob) hand_in(block, sums, plan.totals[job], warps);
      job = task.job;
      sums = ThreadSums();
      if (threadIdx.x == 0)
        block = {.first_violation = kNoViolation, .max_rel_error = task.max_rel_error};
      __syncthreads();
    }
    run_chunk(plan.jobs[job], task.first, task.elements, block, sums);
  }
  if (job != kNoJob) hand_in(block, sums, plan.totals[job], warps);
}

__global__ void fetch_plan(uint4* to, const uint4* from, std::uint64_t vectors) {
  for (std::uint64_t i = threadIdx.x; i < vectors; i += kThreads) to[i] = __ldcv(from + i);
}

template <class C, class R>
__device__ void fetch(const CheckJob& job, JobTotals& totals) {
  const std::uint64_t at = totals.first_violation;
  const Words<2> c = gather<C::kSize, 2, true>(job, at, 1);
  const Words<2> r = gather<R::kSize, 2, false>(job, at, 1);
  totals.candidate_at_first = static_cast<double>(C::value(c.word, 0));
  totals.reference_at_first = static_cast<double>(R::value(r.word, 0));
}

__global__ void fetch_first(CheckPlan plan) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= plan.num_jobs) return;
  const CheckJob& job = plan.jobs[i];
  JobTotals& totals = plan.totals[i];
  if (totals.first_violation >= job.elements) return;
  switch (job.kind) {
    case CheckKind::float64: return fetch<F64, F64>(job, totals);
    case CheckKind::float32: return fetch<F32, F32>(job, totals);
    case CheckKind::float16: return fetch<F16, F16>(job, totals);
    case CheckKind::bfloat16: return fetch<BF16, BF16>(job, totals);
    case CheckKind::int64: return fetch<I64, I64>(job, totals);
    case CheckKind::int32: return fetch<I32, I32>(job, totals);
    case CheckKind::int16: return fetch<I16, I16>(job, totals);
    case CheckKind::int8: return fetch<I8, I8>(job, totals);
    case CheckKind::uint8: return fetch<U8, U8>(job, totals);
    case CheckKind::float32_float64: return fetch<F32, F64>(job, totals);
    case CheckKind::float16_float64: return fetch<F16, F64>(job, totals);
    case CheckKind::bfloat16_float64: return fetch<BF16, F64>(job, totals);
    case CheckKind::equal:
    case CheckKind::guard: return;
  }
}

}  // namespace

cudaError_t check_blocks_per_multiprocessor(int& blocks) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, check, kThreads, 0);
}

cudaError_t launch_fetch_plan(std::byte* to, const std::byte* from, std::size_t bytes,
                              cudaStream_t stream) {
  fetch_plan<<<1, kThreads, 0, stream>>>(
      reinterpret_cast<uint4*>(to), reinterpret_cast<const uint4*>(from), bytes / sizeof(uint4));
  return cudaGetLastError();
}

cudaError_t launch_check(const CheckPlan& plan, unsigned blocks, cudaStream_t stream) {
  check<<<blocks, kThreads, 0, stream>>>(plan);
  return cudaGetLastError();
}

cudaError_t launch_fetch_first(const CheckPlan& plan, cudaStream_t stream) {
  fetch_first<<<(plan.num_jobs + kThreads - 1) / kThreads, kThreads, 0, stream>>>(plan);
  return cudaGetLastError();
}

}  // namespace kb::cuda
