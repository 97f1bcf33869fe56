#include "worker/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "worker/doorbell.h"

namespace kb::worker {
namespace {

ProblemSpec spec() {
  ProblemSpec spec;
  spec.inputs = {{TensorSpec{DType::float32, {100}}, nullptr},
                 {std::nullopt, 2},
                 {TensorSpec{DType::int64, {7}}, nullptr}};
  spec.outputs = {{DType::float32, {1000}}, {DType::boolean, {5}}};
  spec.params = {{"w", {DType::float32, {3, 3}}, false}};
  return spec;
}

TEST(Layout, GivesEveryTensorItsOwnPages) {
  const auto problem = spec();
  const auto layout = plan_layout(
      problem, 3, {{.name = "outputs", .guard_bytes = 4096}, {.name = "truth", .float64 = true}},
      true);
  EXPECT_GE(layout.publications, sizeof(Doorbell));
  EXPECT_LE(layout.publications + kMaxCalls * 2 * kPublicationWords * 8, layout.control_size);
  std::vector<std::pair<std::size_t, std::size_t>> ranges = {{layout.params[0], 36}};
  for (const auto& slot : layout.inputs) {
    ASSERT_EQ(slot.size(), 2u);  // the plain value has no place
    ranges.emplace_back(slot[0], 400);
    ranges.emplace_back(slot[1], 56);
  }
  for (const auto& slot : layout.regions.at("outputs").offsets) {
    ranges.emplace_back(slot[0] - 4096, 4000 + 8192);
    ranges.emplace_back(slot[1] - 4096, 5 + 8192);
  }
  for (const auto& slot : layout.regions.at("truth").offsets) {
    ranges.emplace_back(slot[0], 8000);
    ranges.emplace_back(slot[1], 5);
  }
  std::ranges::sort(ranges);
  for (std::size_t i = 1; i < ranges.size(); ++i)
    EXPECT_LE(ranges[i - 1].first + ranges[i - 1].second, ranges[i].first);
  EXPECT_LE(ranges.back().first + ranges.back().second, layout.size);
}

TEST(Layout, StoresTheTruthOfFloatsAloneInFloat64) {
  const auto layout = plan_layout(spec(), 1, {{.name = "truth", .float64 = true}}, false);
  EXPECT_EQ(layout.regions.at("truth").tensors[0].dtype, DType::float64);
  EXPECT_EQ(layout.regions.at("truth").tensors[1].dtype, DType::boolean);
  EXPECT_EQ(layout.publications, 0u);
}

TEST(Layout, LeavesARegionOutOfSlotsThatDoNotNeedIt) {
  const auto layout =
      plan_layout(spec(), 3, {{"expected"}, {.name = "truth", .float64 = true, .slots = 1}}, false);
  EXPECT_EQ(layout.regions.at("expected").offsets.size(), 3u);
  EXPECT_EQ(layout.regions.at("truth").offsets.size(), 1u);
}

TEST(Layout, IsDescribedAsTheProtocolSays) {
  const auto problem = spec();
  const auto layout = plan_layout(problem, 2, {{"outputs"}}, true);
  const auto json = to_json(layout, problem, "cpu");
  EXPECT_EQ(json["size"], layout.size);
  EXPECT_EQ(json["max_calls"], 256);
  EXPECT_EQ(json["params"][0]["name"], "w");
  EXPECT_EQ(json["inputs"][1][0]["offset"], layout.inputs[1][0]);
  EXPECT_EQ(json["inputs"][1][1]["value"], 2);
  EXPECT_EQ(json["inputs"][1][2]["dtype"], "int64");
  EXPECT_EQ(json["regions"]["outputs"][0][0]["shape"], std::vector<int>{1000});
}

}  // namespace
}  // namespace kb::worker
