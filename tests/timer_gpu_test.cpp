// `--timer` on a GPU: events, do_bench and the host's clock, in both workers.

#include <gmock/gmock.h>

#include "device/cuda/cuda.h"
#include "serve_command.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers

const std::string kRelu =
    "#include <kernelbench/kernel.h>\n"
    "__global__ void relu(const float* x, float* y, int64_t n) {\n"
    "  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += "
    "(int64_t)gridDim.x * blockDim.x)\n    y[i] = x[i] > 0 ? x[i] : 0;\n}\n";
const std::string kHonest =
    kRelu +
    "KB_EXPORT int kb_run(const kb_call* call) {\n"
    "  relu<<<264, 1024, 0, (cudaStream_t)call->stream>>>(kb_input_f32(call, 0), "
    "kb_output_f32(call, 0), kb_numel(&call->inputs[0]));\n  return cudaGetLastError();\n}\n";
// The events are on the call's stream, and see nothing of another one.
const std::string kSideStream =
    kRelu +
    "KB_EXPORT int kb_run(const kb_call* call) {\n  static cudaStream_t side;\n"
    "  if (!side) cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);\n"
    "  relu<<<264, 1024, 0, side>>>(kb_input_f32(call, 0), kb_output_f32(call, 0), "
    "kb_numel(&call->inputs[0]));\n  return cudaGetLastError();\n}\n";
const std::string kTorchRelu =
    "import torch\nimport torch.nn as nn\n\n\nclass ModelNew(nn.Module):\n    def forward(self, "
    "x):\n        return torch.relu(x)\n";

class TimerOnGpu : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (kb::cuda::device_count() == 0) GTEST_SKIP() << "no GPU: " << kb::cuda::availability();
  }

  // ReLU on 105 MB: 210 MB of traffic.
  nlohmann::json judge(const std::string& name, const std::string& source,
                       const std::string& timer) {
    const auto json = served_json({"--device", "cuda:0", "--set", "batch_size=800", "--set",
                                   "dim=32768", "--no-stress", "--timer", timer},
                                  "level1/19", folder_.write(name, source));
    std::printf("  %-9s %-9s time_us %s reference_us %s speedup %s ci %s flags %s\n", timer.c_str(),
                name.c_str(), json["time_us"].dump().c_str(),
                json["reference_time_us"].dump().c_str(), json["speedup"].dump().c_str(),
                json["speedup_ci95"].dump().c_str(), json["flags"].dump().c_str());
    return json;
  }

  static void expect_plausible(const nlohmann::json& json, const char* timer) {
    EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
    EXPECT_TRUE(has_flag(json, "self_reported"));
    EXPECT_EQ(json["timer"], timer);
    ASSERT_TRUE(json["speedup"].is_number()) << json.dump(1);
    EXPECT_GT(json["speedup"], 0.5);
    EXPECT_LT(json["speedup"], 2);
    for (const char* name : {"time_us", "reference_time_us"}) {
      EXPECT_GT(json[name], 10) << name;
      EXPECT_LT(json[name], 100'000) << name;
    }
  }

  TemporaryFolder folder_;
};

TEST_P(TimerOnGpu, NativeKernel) {
  expect_plausible(judge("kernel.cu", kHonest, GetParam()), GetParam());
}

TEST_P(TimerOnGpu, PythonModel) {
  expect_plausible(judge("model.py", kTorchRelu, GetParam()), GetParam());
}

// Where one figure can be held against another: the workers' clocks and the judge's tell of one
// kernel about the same.
TEST_P(TimerOnGpu, AgreesWithTheSealedClock) {
  const auto own = judge("kernel.cu", kHonest, GetParam());
  const auto sealed = judge("kernel.cu", kHonest, "sealed");
  EXPECT_EQ(sealed["timer"], "sealed");
  ASSERT_TRUE(own["time_us"].is_number() && sealed["time_us"].is_number());
  EXPECT_NEAR(own["time_us"].get<double>() / sealed["time_us"].get<double>(), 1, 0.5);
}

TEST_P(TimerOnGpu, ASideStreamIsStillOnlySelfReported) {
  const auto json = judge("side.cu", kSideStream, GetParam());
  EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
  EXPECT_TRUE(has_flag(json, "self_reported"));
}

INSTANTIATE_TEST_SUITE_P(All, TimerOnGpu, testing::Values("event", "do_bench", "host"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
