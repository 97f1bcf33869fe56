// The formulas. Element i of a tensor draws from u(i) = random_bits(key, i), 64 bits, where
// key = random_bits(seed, number of the kind): a function of the seed, the kind and the place
// alone.
//
//   scaled_up       x * 16
//   scaled_down     x / 64
//   sign_flipped    -x where the top bit of u(i) is set
//   heavy_tails     x * exp(1.5 q_k), k = the top 14 bits of u(i), q_k = the (k + 1/2) / 2^14
//   quantile
//                   of the standard normal distribution: |q| reaches 4.0, the factors 1/410 to 410
//   outliers        x * 100 or x * -100 (the lowest bit of u(i) chooses) where the top 12 bits of
//   u(i)
//                   are 0, and at one more place, u(n) scaled to [0, n)
//   small_integers  floor(9 * (u(i) >> 32) / 2^32) - 4
//
// Arithmetic is float64 for float64 and float32 for the others, rounded to nearest at the end; what
// overflows becomes infinite, and the judge drops a trial whose reference is not finite.
#include "device/cpu/stress.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "device/cpu/half.h"
#include "device/random.h"

namespace kb::cpu {
namespace {

constexpr std::size_t kBlockElements = std::size_t{64} << 10;

template <class T>
struct Arithmetic {
  using type = float;
  static float widen(T x) { return to_float(x); }
  static T narrow(float x) {
    if constexpr (std::is_same_v<T, Float16>) {
      return to_float16(x);
    } else {
      return to_bfloat16(x);
    }
  }
};
template <>
struct Arithmetic<float> {
  using type = float;
  static float widen(float x) { return x; }
  static float narrow(float x) { return x; }
};
template <>
struct Arithmetic<double> {
  using type = double;
  static double widen(double x) { return x; }
  static double narrow(double x) { return x; }
};

/// Replaces each element of type T by transform(element, row-major index).
template <class T, class Transform>
void for_each_element(std::span<std::byte> data, ThreadPool& pool, const Transform& transform) {
  std::size_t elements = data.size() / sizeof(T);
  std::size_t blocks = (elements + kBlockElements - 1) / kBlockElements;
  pool.parallel_for(blocks, [&](std::size_t block, unsigned) {
    std::size_t end = std::min(elements, (block + 1) * kBlockElements);
    for (std::size_t i = block * kBlockElements; i < end; ++i) {
      std::byte* at = data.data() + i * sizeof(T);
      T x;
      std::memcpy(&x, at, sizeof x);
      x = Arithmetic<T>::narrow(transform(Arithmetic<T>::widen(x), i));
      std::memcpy(at, &x, sizeof x);
    }
  });
}

template <class T>
void apply(Stress kind, std::span<std::byte> data, std::uint64_t key, ThreadPool& pool) {
  using A = typename Arithmetic<T>::type;
  switch (kind) {
    case Stress::planted: break;  // not by element: see plant()
    case Stress::scaled_up:
      return for_each_element<T>(data, pool, [](A x, std::size_t) { return x * A{16}; });
    case Stress::scaled_down:
      return for_each_element<T>(data, pool, [](A x, std::size_t) { return x / A{64}; });
    case Stress::sign_flipped:
      return for_each_element<T>(data, pool, [key](A x, std::size_t i) {
        return (random_bits(key, i) >> 63) != 0 ? -x : x;
      });
    case Stress::heavy_tails: {
      const std::vector<double> factors = stress_factors();
      return for_each_element<T>(data, pool, [key, &factors](A x, std::size_t i) {
        return x * static_cast<A>(factors[random_bits(key, i) >> (64 - kStressFactorBits)]);
      });
    }
    case Stress::outliers: {
      std::size_t elements = data.size() / sizeof(T);
      if (elements == 0) return;
      // For a tensor of over 2^32 elements the high half of a 128-bit product would reach every
      // place; multiplying as doubles does too, to 53 bits.
      double fraction = static_cast<double>(random_bits(key, elements) >> 11) * 0x1p-53;
      auto place = static_cast<std::size_t>(fraction * static_cast<double>(elements));
      place = std::min(place, elements - 1);
      return for_each_element<T>(data, pool, [key, place](A x, std::size_t i) {
        std::uint64_t u = random_bits(key, i);
        if ((u >> 52) != 0 && i != place) return x;
        return x * ((u & 1) != 0 ? A{100} : A{-100});
      });
    }
    case Stress::small_integers:
      return for_each_element<T>(data, pool, [key](A, std::size_t i) {
        auto bits = static_cast<std::uint32_t>(random_bits(key, i) >> 32);
        return static_cast<A>(static_cast<int>(random_below(bits, 9)) - 4);
      });
  }
  throw std::invalid_argument("apply_stress: no such kind");
}

// Flips sign bits: the top bit of the last byte of an element, in each of the floating types
// (little-endian).
void plant(std::span<std::byte> data, std::size_t size, std::uint64_t key) {
  const std::size_t elements = data.size() / size;
  if (elements == 0) return;
  const std::size_t count = std::min(elements, elements / 65536 + 3);
  for (std::size_t i = 0; i < count; ++i)
    data[(random_bits(key, i) % elements + 1) * size - 1] ^= std::byte{0x80};
}

}  // namespace

void apply_stress(Stress kind, std::span<std::byte> data, DType dtype, std::uint64_t seed,
                  ThreadPool& pool) {
  if (!is_floating(dtype)) return;
  if (data.size() % size_of(dtype) != 0) {
    throw std::invalid_argument("apply_stress: not a whole number of elements");
  }
  std::uint64_t key = random_bits(seed, static_cast<std::uint64_t>(kind));
  if (kind == Stress::planted) return plant(data, size_of(dtype), key);
  switch (dtype) {
    case DType::float64: return apply<double>(kind, data, key, pool);
    case DType::float32: return apply<float>(kind, data, key, pool);
    case DType::float16: return apply<Float16>(kind, data, key, pool);
    case DType::bfloat16: return apply<BFloat16>(kind, data, key, pool);
    default: return;
  }
}

}  // namespace kb::cpu
