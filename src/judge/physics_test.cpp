#include "judge/physics.h"

#include <gtest/gtest.h>

namespace {

using namespace kb::judge;  // NOLINT: what is tested

// 2 MB in, 1 MB out, 1e12 operations: bound by arithmetic on any device here.
kb::worker::ProblemSpec spec() {
  kb::worker::ProblemSpec spec;
  spec.inputs = {{kb::TensorSpec{kb::DType::float32, {500'000}}, nullptr}};
  spec.outputs = {{kb::DType::float32, {250'000}}};
  spec.flops = 1e12;
  return spec;
}

const DeviceFigures kH200{"NVIDIA H200", 5e7, 4e6};
const DeviceFigures kCpu{"AMD EPYC", 0, 1e4};

Ceilings measured(std::map<std::string, double> rates) {
  return {{"a device", "a driver", "2.11.0"}, "2026-11-30T01:20:00Z", 4e12, std::move(rates)};
}

TEST(Bounds, TakeADatasheetWhereNothingWasMeasured) {
  const auto bounds = bounds_of(spec(), kH200, "fp32", std::nullopt);
  EXPECT_EQ(bounds.work.rate_source, RateSource::datasheet);
  EXPECT_DOUBLE_EQ(bounds.realistic_us, 1e18 / bounds.work.operations_per_s);
  EXPECT_FALSE(bounds.work.measured);
  EXPECT_LT(bounds.impossible_us, bounds.realistic_us);
}

TEST(Bounds, TakeTheMeasuredRateOfTheProblemsOwnPrecision) {
  const auto ceilings = measured({{"fp32", 5e13}, {"tf32", 4e14}, {"bf16", 8e14}});
  const auto datasheet = bounds_of(spec(), kH200, "fp32", std::nullopt);
  const auto full = bounds_of(spec(), kH200, "fp32", ceilings);
  EXPECT_DOUBLE_EQ(full.realistic_us, 1e18 / 5e13) << "and not tf32's";
  EXPECT_EQ(full.work.rate_source, RateSource::measured);
  EXPECT_EQ(full.work.measured->measured_at, ceilings.measured_at);
  EXPECT_EQ(full.impossible_us, datasheet.impossible_us) << "the datasheet's, whatever is measured";

  EXPECT_DOUBLE_EQ(bounds_of(spec(), kH200, "bf16", ceilings).realistic_us, 1e18 / 8e14);
  const auto half = bounds_of(spec(), kH200, "fp16", ceilings);
  EXPECT_EQ(half.work.rate_source, RateSource::datasheet) << "fp16 was not measured";
  EXPECT_EQ(half.realistic_us, bounds_of(spec(), kH200, "fp16", std::nullopt).realistic_us);
}

TEST(Bounds, OfADeviceWithoutADatasheetAreOfACopyUntilItIsMeasured) {
  const auto before = bounds_of(spec(), kCpu, "fp32", std::nullopt);
  EXPECT_EQ(before.work.rate_source, RateSource::unknown);
  EXPECT_DOUBLE_EQ(before.realistic_us, 3e6 / 1e4);
  const auto after = bounds_of(spec(), kCpu, "fp32", measured({{"fp32", 2e11}}));
  EXPECT_DOUBLE_EQ(after.realistic_us, 1e18 / 2e11);
  EXPECT_EQ(after.impossible_us, before.impossible_us);
}

TEST(Bounds, TakeFp32WhereItsProductsAreFasterThanThoseOfHalfTheSize) {
  const auto ceilings = measured({{"fp32", 2e11}, {"fp16", 1e9}});
  EXPECT_DOUBLE_EQ(bounds_of(spec(), kCpu, "fp16", ceilings).work.operations_per_s, 2e11);
}

TEST(Bounds, OfWhatMovesMoreThanItComputesAreMemorys) {
  auto moves = spec();
  moves.flops = 1;
  const auto bounds = bounds_of(moves, kCpu, "fp32", measured({{"fp32", 2e11}}));
  EXPECT_DOUBLE_EQ(bounds.realistic_us, 3e6 / 1e4);
}

}  // namespace
