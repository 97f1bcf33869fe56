#include "measure/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kb::measure {
namespace {

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
  const std::vector<double> sample = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(quantile(sample, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(sample, 1), 4);
  EXPECT_DOUBLE_EQ(median(sample), 2.5);
  EXPECT_DOUBLE_EQ(quantile(sample, 0.25), 1.75);
}

TEST(Quantile, OfNothingIsNaN) {
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(GeometricMean, RefusesWhatHasNoLogarithm) {
  EXPECT_DOUBLE_EQ(geometric_mean(std::vector<double>{1, 4}), 2);
  EXPECT_TRUE(std::isnan(geometric_mean(std::vector<double>{1, 0})));
  EXPECT_TRUE(std::isnan(geometric_mean(std::vector<double>{1, -2})));
  EXPECT_TRUE(std::isnan(geometric_mean({})));
}

TEST(Bootstrap, IsReproducibleAndBracketsTheMedian) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(10, 1);
  std::vector<double> sample(40);
  for (auto& value : sample) value = normal(random);
  const auto first = median_ci95(sample, 7), second = median_ci95(sample, 7);
  EXPECT_EQ(first.low, second.low);
  EXPECT_EQ(first.high, second.high);
  EXPECT_LT(first.low, median(sample));
  EXPECT_GT(first.high, median(sample));
}

// The coverage that "95 %" promises, on samples as small as ours: the percentile bootstrap of a
// median is slightly conservative, so most of the failures must be within 5 %.
TEST(Bootstrap, CoversTheTrueMedianAboutNineteenTimesInTwenty) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal(1, 0.05);
  int above = 0, below = 0;
  constexpr int kRuns = 400;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> sample(30);
    for (auto& value : sample) value = normal(random);
    const auto ci = median_ci95(sample, static_cast<std::uint64_t>(run), 500);
    above += ci.low > 1;
    below += ci.high < 1;
  }
  EXPECT_LE(above, kRuns * 5 / 100);
  EXPECT_LE(below, kRuns * 5 / 100);
  EXPECT_GE(above + below, 1) << "an interval that never misses is too wide to be of use";
}

}  // namespace
}  // namespace kb::measure
