#include "examine/description.h"

#include <gtest/gtest.h>

#include "examine/speed_of_light.h"

namespace {

using namespace kb::examine;  // NOLINT: a test's own subject

nlohmann::json reply() {
  return nlohmann::json::parse(R"({
    "size": "public", "device": "meta", "matrix_operations": 137438953472, "other_operations": 16777216,
    "spec": {"inputs": [{"kind": "tensor", "dtype": "float32", "shape": [1000, 1000]}],
             "outputs": [{"dtype": "float32", "shape": [1000, 1000]}],
             "params": [{"name": "w", "dtype": "float32", "shape": [1000, 1000], "buffer": false}],
             "sizes": ["small"]}})");
}

TEST(Description, IsRead) {
  const auto description = parse_description(reply());
  ASSERT_TRUE(description) << description.error();
  EXPECT_EQ(description->size, "public");
  EXPECT_EQ(description->spec.input_bytes(), 4'000'000u);
  EXPECT_EQ(description->matrix_operations, 137438953472.0);
}

TEST(Description, IsNotReadFromNonsense) {
  for (const char* member : {"spec", "size", "matrix_operations", "other_operations"}) {
    auto broken = reply();
    broken.erase(member);
    EXPECT_FALSE(parse_description(broken)) << member;
  }
  for (const auto& value : {nlohmann::json("many"), nlohmann::json(-1), nlohmann::json(1e40)}) {
    auto broken = reply();
    broken["matrix_operations"] = value;
    EXPECT_FALSE(parse_description(broken)) << value;
  }
}

TEST(SpeedOfLight, IsTheLongerOfMemoryAndArithmetic) {
  kb::card::Card card;
  card.memory_bytes_per_s = 1e12;
  card.l2_bytes = 1'000'000;
  card.rates = {.fp32 = 1e12, .tf32 = 10e12, .fp16 = 20e12, .bf16 = 20e12};
  auto description = *parse_description(reply());
  description.matrix_operations = 100e6;
  description.other_operations = 1e6;
  const auto light = speed_of_light(description, card, "fp32");
  EXPECT_DOUBLE_EQ(light.memory_us,
                   11);  // two tensors of 4 MB, and 3 MB that the cache does not take
  EXPECT_DOUBLE_EQ(light.tensor_us, 10);
  EXPECT_DOUBLE_EQ(light.vector_us, 101);
  EXPECT_DOUBLE_EQ(light.us(), 11);
  const auto half = speed_of_light(description, card, "bf16");
  EXPECT_DOUBLE_EQ(half.memory_us, 5);
  EXPECT_DOUBLE_EQ(half.tensor_us, 5);
  // What has no tensor cores does matrix products on its vector units.
  card.rates.tf32 = 0;
  EXPECT_DOUBLE_EQ(speed_of_light(description, card, "fp32").tensor_us, 100);
}

}  // namespace
