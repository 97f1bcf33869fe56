#include "device/cpu/compare_run.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "device/cpu/half.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

// No fused multiply-add: the scalar and the vector code, and all machines, must round alike.
#if defined(__clang__)
#pragma clang fp contract(off)
#else
#pragma GCC optimize("fp-contract=off")
// Vectors are passed only between functions that are inlined into one another: their ABI is moot.
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

#define KB_INLINE [[gnu::always_inline]] inline

namespace kb::cpu {
namespace {

constexpr std::size_t kLanes = 8;

constexpr double kLargest = std::numeric_limits<double>::max();
/// Below, a square (or a product with a relative error, which is at least 2^-54 when it is not 0)
/// may lose digits to underflow. Its square is 2^-960; float64 keeps all digits down to 2^-1022.
constexpr double kTiny = 0x1p-480;

template <class T>
constexpr bool kIsFloating =
    std::is_floating_point_v<T> || std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

template <class T>
T load_one(const std::byte* from) {
  T x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

template <class T>
double value_of(const std::byte* from) {
  T x = load_one<T>(from);
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return static_cast<double>(to_float(x));
  } else {
    return static_cast<double>(x);
  }
}

template <class C, class R>
ExactSquares sum_squares_exactly(const std::byte* c_bytes, const std::byte* r_bytes,
                                 std::size_t n) {
  ExactSquares squares;
  for (std::size_t i = 0; i < n; ++i) {
    double c = value_of<C>(c_bytes + i * sizeof(C));
    double r = value_of<R>(r_bytes + i * sizeof(R));
    if (!std::isfinite(c) || !std::isfinite(r)) continue;
    long double error = static_cast<long double>(c) - static_cast<long double>(r);
    squares.error += error * error;
    squares.reference += static_cast<long double>(r) * static_cast<long double>(r);
  }
  return squares;
}

template <class C, class R>
std::size_t first_violation(const std::byte* c_bytes, const std::byte* r_bytes, std::size_t n,
                            ElementTolerance tolerance) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::byte* c_at = c_bytes + i * sizeof(C);
    const std::byte* r_at = r_bytes + i * sizeof(R);
    if constexpr (kIsFloating<C>) {
      double c = value_of<C>(c_at);
      double r = value_of<R>(r_at);
      if (c == r || (std::isnan(c) && std::isnan(r))) continue;
      double gap = std::fabs(c - r);
      if (gap <= kLargest && gap <= tolerance.atol + tolerance.rtol * std::fabs(r)) continue;
    } else {
      if (load_one<C>(c_at) == load_one<R>(r_at)) continue;
    }
    return i;
  }
  return n;
}

namespace baseline {
#define KB_WIDTH 2
#include "device/cpu/compare_kernels.inl"
#undef KB_WIDTH
}  // namespace baseline

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,f16c")
#endif
namespace avx2 {
#define KB_WIDTH 4
#include "device/cpu/compare_kernels.inl"
#undef KB_WIDTH
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,f16c"))), \
                             apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,f16c,prefer-vector-width=512")
#endif
namespace avx512 {
#define KB_WIDTH 8
#include "device/cpu/compare_kernels.inl"
#undef KB_WIDTH
}  // namespace avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif  // __x86_64__

template <class C, class R>
RunKernels kernels_for(VectorUnit unit) {
  RunKernels kernels{baseline::screen<C, R>,
                     baseline::inspect<C, R>,
                     sum_squares_exactly<C, R>,
                     first_violation<C, R>,
                     value_of<C>,
                     value_of<R>};
#if defined(__x86_64__)
  if (unit == VectorUnit::avx2) {
    kernels.screen = avx2::screen<C, R>;
    kernels.inspect = avx2::inspect<C, R>;
  } else if (unit == VectorUnit::avx512) {
    kernels.screen = avx512::screen<C, R>;
    kernels.inspect = avx512::inspect<C, R>;
  }
#else
  (void)unit;
#endif
  return kernels;
}

template <class C>
RunKernels kernels_of_floats(DType reference, VectorUnit unit) {
  switch (reference) {
    case DType::float64: return kernels_for<C, double>(unit);
    case DType::float32: return kernels_for<C, float>(unit);
    case DType::float16: return kernels_for<C, Float16>(unit);
    case DType::bfloat16: return kernels_for<C, BFloat16>(unit);
    default: throw std::invalid_argument("compare: a floating tensor against integers");
  }
}

#if defined(__x86_64__)
/// True when the machine converts float16; not every compiler's __builtin_cpu_supports knows.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

}  // namespace

VectorUnit widest_vector_unit() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && has_f16c()) {
    return VectorUnit::avx512;
  }
  if (__builtin_cpu_supports("avx2") && has_f16c()) return VectorUnit::avx2;
#endif
  return VectorUnit::baseline;
}

RunKernels run_kernels(DType candidate, DType reference, VectorUnit unit) {
  if (!is_floating(candidate) && candidate != reference) {
    throw std::invalid_argument("compare: integers against another type");
  }
  switch (candidate) {
    case DType::float64: return kernels_of_floats<double>(reference, unit);
    case DType::float32: return kernels_of_floats<float>(reference, unit);
    case DType::float16: return kernels_of_floats<Float16>(reference, unit);
    case DType::bfloat16: return kernels_of_floats<BFloat16>(reference, unit);
    case DType::int64: return kernels_for<std::int64_t, std::int64_t>(unit);
    case DType::int32: return kernels_for<std::int32_t, std::int32_t>(unit);
    case DType::int16: return kernels_for<std::int16_t, std::int16_t>(unit);
    case DType::int8: return kernels_for<std::int8_t, std::int8_t>(unit);
    // A bool is compared as the byte it is: PyTorch writes 0 and 1, and the 0xFF of an output that
    // was never written must not pass for true.
    case DType::uint8:
    case DType::boolean: return kernels_for<std::uint8_t, std::uint8_t>(unit);
  }
  throw std::invalid_argument("compare: no such dtype");
}

}  // namespace kb::cpu
