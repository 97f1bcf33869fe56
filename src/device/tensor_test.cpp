#include "device/tensor.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace kb {
namespace {

TEST(DType, NamesGoThereAndBack) {
  for (int i = 0; i < kNumDTypes; ++i) {
    auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
  }
  EXPECT_EQ(name_of(DType::bfloat16), "bfloat16");
  EXPECT_EQ(name_of(DType::boolean), "bool");
  EXPECT_EQ(dtype_from_name("complex64"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
}

TEST(DType, KnowsSizesAndFloats) {
  EXPECT_EQ(size_of(DType::float64), 8U);
  EXPECT_EQ(size_of(DType::bfloat16), 2U);
  EXPECT_EQ(size_of(DType::boolean), 1U);
  EXPECT_TRUE(is_floating(DType::bfloat16));
  EXPECT_FALSE(is_floating(DType::int64));
  EXPECT_THROW(size_of(static_cast<DType>(kNumDTypes)), std::out_of_range);
}

TEST(TensorSpec, CountsElements) {
  EXPECT_EQ((TensorSpec{DType::float32, {}}).numel(), 1);
  EXPECT_EQ((TensorSpec{DType::float32, {3, 5, 7}}).bytes(), 420U);
  EXPECT_EQ((TensorSpec{DType::float16, {3, 0}}).numel(), 0);
}

TEST(TensorSpec, RefusesImpossibleShapes) {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW((TensorSpec{DType::float32, {-1}}).numel(), std::invalid_argument);
  EXPECT_THROW((TensorSpec{DType::float32, {kHuge, 2}}).numel(), std::invalid_argument);
  EXPECT_THROW((TensorSpec{DType::float64, {kHuge}}).bytes(), std::invalid_argument);
  EXPECT_EQ((TensorSpec{DType::float32, {kHuge, kHuge, 0}}).numel(), 0);
}

}  // namespace
}  // namespace kb
