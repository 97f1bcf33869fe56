#include "device/cpu/stress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include "device/cpu/half.h"
#include "device/random.h"

namespace kb::cpu {
namespace {

constexpr std::size_t kElements = 300'000;

std::vector<float> uniform(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = static_cast<float>(random_bits(7, i) >> 40) * 0x1p-24F + 0.001F;
  }
  return x;
}

std::vector<float> stressed(Stress kind, std::vector<float> x, std::uint64_t seed,
                            unsigned threads = 2) {
  ThreadPool pool(threads);
  apply_stress(kind, std::as_writable_bytes(std::span(x)), DType::float32, seed, pool);
  return x;
}

TEST(Stress, DependsOnTheSeedAndNotOnTheThreads) {
  std::vector<float> x = uniform(kElements);
  for (Stress kind : kAllStress) {
    std::vector<float> once = stressed(kind, x, 5, 1);
    EXPECT_EQ(once, stressed(kind, x, 5, 3)) << name_of(kind);
    EXPECT_NE(once, x) << name_of(kind);
    bool random = kind != Stress::scaled_up && kind != Stress::scaled_down;
    EXPECT_EQ(once != stressed(kind, x, 6, 1), random) << name_of(kind);
  }
}

TEST(Stress, HasDistinctNames) {
  std::set<std::string_view> names;
  for (Stress kind : kAllStress) names.insert(name_of(kind));
  EXPECT_EQ(names.size(), kAllStress.size());
}

TEST(Stress, ScalesAndFlips) {
  std::vector<float> x = uniform(kElements);
  std::vector<float> up = stressed(Stress::scaled_up, x, 1);
  std::vector<float> down = stressed(Stress::scaled_down, x, 1);
  std::vector<float> flipped = stressed(Stress::sign_flipped, x, 1);
  std::size_t negative = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(up[i], 16 * x[i]);
    ASSERT_EQ(down[i], x[i] / 64);
    ASSERT_EQ(std::fabs(flipped[i]), x[i]);
    negative += flipped[i] < 0;
  }
  EXPECT_NEAR(static_cast<double>(negative) / kElements, 0.5, 0.01);
}

TEST(Stress, HeavyTailsAreLogNormal) {
  std::vector<float> x(kElements, 1.0F);
  std::vector<float> y = stressed(Stress::heavy_tails, x, 1);
  double sum = 0, squares = 0, fourth = 0;
  for (float v : y) {
    double z = std::log(static_cast<double>(v)) / 1.5;
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
  }
  EXPECT_NEAR(sum / kElements, 0, 0.01);
  EXPECT_NEAR(squares / kElements, 1, 0.01);
  EXPECT_NEAR(fourth / kElements, 3, 0.1);
  EXPECT_GT(*std::max_element(y.begin(), y.end()), 200);
}

TEST(Stress, PlantsOutliers) {
  std::vector<float> x = uniform(kElements);
  std::vector<float> y = stressed(Stress::outliers, x, 1);
  std::size_t planted = 0, negative = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (y[i] == x[i]) continue;
    ASSERT_EQ(std::fabs(y[i]), 100 * x[i]);
    ++planted;
    negative += y[i] < 0;
  }
  EXPECT_NEAR(static_cast<double>(planted), kElements / 4096.0, 30);
  EXPECT_GT(negative, 0U);
  EXPECT_LT(negative, planted);
  for (std::size_t n = 1; n < 50; ++n) {
    EXPECT_NE(stressed(Stress::outliers, uniform(n), n), uniform(n)) << "at least one of " << n;
  }
}

TEST(Stress, DrawsSmallIntegersEvenly) {
  std::vector<float> y = stressed(Stress::small_integers, uniform(kElements), 1);
  std::vector<int> counts(9);
  for (float v : y) {
    ASSERT_EQ(v, std::floor(v));
    ASSERT_LE(std::fabs(v), 4);
    ++counts[static_cast<std::size_t>(v + 4)];
  }
  for (int count : counts) EXPECT_NEAR(count, kElements / 9.0, 1000);
}

TEST(Stress, LeavesIntegersAndTakesEmptyTensors) {
  ThreadPool pool(2);
  std::vector<std::int32_t> labels = {1, 2, 3};
  for (Stress kind : kAllStress) {
    apply_stress(kind, std::as_writable_bytes(std::span(labels)), DType::int32, 1, pool);
    EXPECT_EQ(labels, (std::vector<std::int32_t>{1, 2, 3}));
    for (DType dtype : {DType::float64, DType::float32, DType::float16, DType::bfloat16}) {
      apply_stress(kind, {}, dtype, 1, pool);
    }
  }
}

TEST(Stress, TransformsSixteenBitTypes) {
  ThreadPool pool(2);
  std::vector<Float16> half = {to_float16(1.5F), to_float16(-60000.0F)};
  apply_stress(Stress::scaled_up, std::as_writable_bytes(std::span(half)), DType::float16, 1, pool);
  EXPECT_EQ(to_float(half[0]), 24.0F);
  EXPECT_EQ(to_float(half[1]), -INFINITY);
  std::vector<BFloat16> brain = {to_bfloat16(1.5F), to_bfloat16(-1e38F)};
  apply_stress(Stress::scaled_down, std::as_writable_bytes(std::span(brain)), DType::bfloat16, 1,
               pool);
  EXPECT_EQ(to_float(brain[0]), 1.5F / 64);
  std::vector<double> wide = {1e300};
  apply_stress(Stress::scaled_up, std::as_writable_bytes(std::span(wide)), DType::float64, 1, pool);
  EXPECT_EQ(wide[0], 1.6e301);
}

TEST(Stress, PlantedFlipsFewSignsAndNothingElse) {
  ThreadPool pool(2);
  std::vector<float> values(200'000, 1.5f);
  const auto bytes = std::as_writable_bytes(std::span(values));
  apply_stress(Stress::planted, bytes, DType::float32, 7, pool);
  const auto flipped = std::ranges::count(values, -1.5f);
  EXPECT_GE(flipped, 3);
  EXPECT_LE(flipped, 6);
  EXPECT_EQ(std::ranges::count(values, 1.5f) + flipped, 200'000);
  std::vector<float> one = {2};
  apply_stress(Stress::planted, std::as_writable_bytes(std::span(one)), DType::float32, 7, pool);
  EXPECT_EQ(one[0], -2);
  apply_stress(Stress::planted, {}, DType::float32, 7, pool);
}

}  // namespace
}  // namespace kb::cpu
