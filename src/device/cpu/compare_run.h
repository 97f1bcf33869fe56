// The inner loop of the comparison: one run of at most kRunElements elements, which fits in the L1
// or L2 cache, so that looking at it twice costs no memory bandwidth.
//
// Two kernels see a run. `screen` only adds up squares and asks whether there is anything to
// report: 15 vector operations for 8 elements, none of them a division. When it answers yes (a
// violation, a NaN or Inf, a value that beats the largest relative error so far), `inspect` does
// the whole work on the same run. A correct output passes `inspect` for a handful of runs; an
// output that is wrong everywhere pays two to three times.
//
// Arithmetic is float64. Sums of squares are kept in 8 float64 lanes over a run, so within a run a
// sum of n terms is off by a factor of at most 1 ± (n/8 + 4) 2^-53, that is 3e-14 for 2048; runs
// are added in long double. Where squares would leave float64's range (|x| > 1e154 or < 1e-144,
// which only float64 tensors hold), `sum_squares_exactly` repeats the sums in long double.
//
// Lanes, order and rounding are the same on every machine, whatever vector length it has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/tensor.h"

namespace kb::cpu {

inline constexpr std::size_t kRunElements = 2048;

struct ElementTolerance {
  double atol;
  double rtol;
};

/// What is known about a run after `screen`, or about it in full after `inspect`.
struct RunSummary {
  double error_squares = 0;      ///< sum of (c - r)^2 over elements finite on both sides
  double reference_squares = 0;  ///< sum of r^2 over those
  double max_abs_error = 0;      ///< over those
  double max_rel_error = 0;      ///< over those with r != 0; 0 from `screen`
  std::int64_t violations = 0;
  std::int64_t nonfinite_mismatches = 0;
  bool look_again = false;  ///< from `screen`: everything above is meaningless until `inspect`
  bool extreme = false;     ///< from `inspect`: the two sums left float64's range
};

struct ExactSquares {
  long double error = 0;
  long double reference = 0;
};

/// The kernels for one pair of element types, compiled for the machine's vector unit. Pointers need
/// no alignment; `n` may be anything up to kRunElements.
struct RunKernels {
  /// Asks for `inspect` whenever an element may violate the tolerance, is not finite, or may have a
  /// relative error over `max_rel_error`. Never misses one.
  RunSummary (*screen)(const std::byte* candidate, const std::byte* reference, std::size_t n,
                       ElementTolerance tolerance, double max_rel_error);
  RunSummary (*inspect)(const std::byte* candidate, const std::byte* reference, std::size_t n,
                        ElementTolerance tolerance);
  ExactSquares (*sum_squares_exactly)(const std::byte* candidate, const std::byte* reference,
                                      std::size_t n);
  /// Index of the first violation; n without.
  std::size_t (*first_violation)(const std::byte* candidate, const std::byte* reference,
                                 std::size_t n, ElementTolerance tolerance);
  double (*candidate_value)(const std::byte* element);
  double (*reference_value)(const std::byte* element);
};

enum class VectorUnit : std::uint8_t {
  baseline,  ///< what the compiler may assume everywhere: SSE2 on x86-64, NEON on ARM
  avx2,
  avx512,
};

/// The widest unit that this machine has and the kernels are compiled for.
VectorUnit widest_vector_unit();

/// Throws std::invalid_argument unless both types are floating, or both the same.
RunKernels run_kernels(DType candidate, DType reference, VectorUnit unit);

}  // namespace kb::cpu
