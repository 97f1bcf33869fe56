#include "worker/spec.h"

#include <gtest/gtest.h>

namespace kb::worker {
namespace {

nlohmann::json good() {
  return nlohmann::json::parse(R"({
    "inputs": [{"kind": "tensor", "dtype": "float32", "shape": [2, 3]}, {"kind": "value", "value": 3.5}],
    "outputs": [{"dtype": "bfloat16", "shape": []}],
    "params": [{"name": "w", "dtype": "int64", "shape": [4], "buffer": true}],
    "uses_rng": true, "repeatable": false, "sizes": ["small"]})");
}

TEST(Spec, IsReadInFull) {
  const auto spec = parse_spec(good());
  ASSERT_TRUE(spec) << spec.error();
  EXPECT_EQ(spec->input_bytes(), 24u);
  EXPECT_EQ(spec->output_bytes(), 2u);
  EXPECT_EQ(spec->param_bytes(), 32u);
  EXPECT_EQ(spec->inputs[1].value, 3.5);
  EXPECT_TRUE(spec->params[0].buffer);
  EXPECT_TRUE(spec->uses_rng);
  EXPECT_FALSE(spec->repeatable);
  EXPECT_FALSE(spec->mutates_inputs);
  EXPECT_EQ(spec->sizes, std::vector<std::string>{"small"});
}

// Each change must be refused with a sentence, not believed and not thrown.
TEST(Spec, RefusesWhatIsNotOfTheProtocol) {
  const auto refused = [](auto change) {
    auto json = good();
    change(json);
    const auto spec = parse_spec(json);
    EXPECT_FALSE(spec) << json;
    if (!spec) {
      EXPECT_FALSE(spec.error().empty());
    }
  };
  refused([](auto& j) { j = 3; });
  refused([](auto& j) { j.erase("inputs"); });
  refused([](auto& j) { j["outputs"] = nlohmann::json::array(); });
  refused([](auto& j) { j["inputs"][0]["dtype"] = "complex64"; });
  refused([](auto& j) { j["inputs"][0]["shape"] = {-1}; });
  refused([](auto& j) { j["inputs"][0]["shape"] = {1 << 30, 1 << 30}; });
  refused([](auto& j) { j["inputs"][0]["shape"] = {1.5}; });
  refused([](auto& j) { j["inputs"][0]["shape"] = {1, 1, 1, 1, 1, 1, 1, 1, 1}; });
  refused([](auto& j) { j["inputs"][1]["value"] = {1, 2}; });
  refused([](auto& j) { j["params"].push_back(j["params"][0]); });
  refused([](auto& j) { j["params"][0].erase("name"); });
}

}  // namespace
}  // namespace kb::worker
