// The two 16-bit floating types as bits, converted without libm and without compiler types
// (_Float16 and __bf16 exist on some targets of some compilers only).
#pragma once

#include <bit>
#include <cstdint>

namespace kb::cpu {

struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

/// Exact. The bits of |h|, shifted into place, are a float whose exponent is biased by 15 instead
/// of 127: a multiplication by 2^112 puts it right, subnormals included. Inf and NaN keep all
/// exponent bits.
constexpr float to_float(Float16 h) {
  float magnitude = std::bit_cast<float>((h.bits & 0x7fffU) << 13) * 0x1p112F;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(magnitude);
  if ((h.bits & 0x7c00U) == 0x7c00U) bits |= 0x7f800000U;
  return std::bit_cast<float>(bits | ((h.bits & 0x8000U) << 16));
}

/// Exact: a bfloat16 is the upper half of a float.
constexpr float to_float(BFloat16 b) {
  return std::bit_cast<float>(std::uint32_t{b.bits} << 16);
}

/// Rounds to nearest, ties to even; from 65520 on the result is infinite. A NaN stays a (quiet)
/// NaN.
constexpr Float16 to_float16(float x) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000U) {
    half = 0x7e00U;
  } else if (magnitude >= 0x477ff000U) {  // 65520
    half = 0x7c00U;
  } else if (magnitude < 0x38800000U) {  // 2^-14: the result is subnormal, a multiple of 2^-24
    // 0.5f has an ulp of 2^-24: the addition rounds, and leaves the multiple in the low bits.
    float aligned = std::bit_cast<float>(magnitude) + 0.5F;
    half = std::bit_cast<std::uint32_t>(aligned) - 0x3f000000U;
  } else {
    std::uint32_t odd = (magnitude >> 13) & 1U;
    half = (magnitude - (112U << 23) + 0xfffU + odd) >> 13;
  }
  return {static_cast<std::uint16_t>(half | sign)};
}

/// Rounds to nearest, ties to even; a NaN stays a (quiet) NaN.
constexpr BFloat16 to_bfloat16(float x) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) {
    return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  }
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

}  // namespace kb::cpu
