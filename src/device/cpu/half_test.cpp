#include "device/cpu/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kb::cpu {
namespace {

/// What the IEEE format says, by its formula.
float by_formula(std::uint16_t bits, int exponent_bits, int mantissa_bits) {
  int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  int mantissa = bits & ((1 << mantissa_bits) - 1);
  int bias = (1 << (exponent_bits - 1)) - 1;
  double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return static_cast<float>(mantissa != 0 ? std::nan("") : sign * INFINITY);
  }
  double value = exponent == 0
                     ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                     : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return static_cast<float>(sign * value);
}

template <class T>
void check_all_values(int exponent_bits, T (*narrow)(float)) {
  int mantissa_bits = 15 - exponent_bits;
  for (unsigned i = 0; i < 0x10000; ++i) {
    T h{static_cast<std::uint16_t>(i)};
    float expected = by_formula(h.bits, exponent_bits, mantissa_bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(to_float(h))) << i;
      ASSERT_TRUE(std::isnan(to_float(narrow(to_float(h))))) << i;
      continue;
    }
    ASSERT_EQ(to_float(h), expected) << i;
    ASSERT_EQ(std::signbit(to_float(h)), std::signbit(expected)) << i;
    ASSERT_EQ(narrow(expected).bits, h.bits) << i;
    // Halfway to the next value up goes to the even one; a little off goes to the nearer one.
    if ((i & 0x7fff) == 0x7fff || std::isinf(expected)) continue;
    float next = by_formula(static_cast<std::uint16_t>(i + 1), exponent_bits, mantissa_bits);
    if (std::isinf(next)) continue;
    float middle = expected + (next - expected) / 2;
    if (middle == expected || middle == next) continue;  // a bfloat16 subnormal of one float ulp
    std::uint16_t even = static_cast<std::uint16_t>(i + (i & 1));
    ASSERT_EQ(narrow(middle).bits, even) << i;
    ASSERT_EQ(narrow(std::nextafter(middle, expected)).bits, i) << i;
    ASSERT_EQ(narrow(std::nextafter(middle, next)).bits, i + 1) << i;
  }
}

TEST(Float16, EveryValueConvertsAndRounds) {
  check_all_values<Float16>(5, to_float16);
}

TEST(BFloat16, EveryValueConvertsAndRounds) {
  check_all_values<BFloat16>(8, to_bfloat16);
}

TEST(Float16, OverflowsToInfinity) {
  EXPECT_EQ(to_float16(65504.0F).bits, 0x7bff);
  EXPECT_EQ(to_float16(65519.9F).bits, 0x7bff);
  EXPECT_EQ(to_float16(65520.0F).bits, 0x7c00);
  EXPECT_EQ(to_float16(-1e30F).bits, 0xfc00);
  EXPECT_EQ(to_float16(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
}

}  // namespace
}  // namespace kb::cpu
