// Native candidates that export a TVM-FFI function, in place of kb_run.

#include <gmock/gmock.h>

#include "build/nvcc.h"
#include "run_command.h"
#include "store/store.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers
using testing::HasSubstr;

const std::string kFunction =
    "#include <tvm/ffi/container/tensor.h>\n#include <tvm/ffi/error.h>\n"
    "#include <tvm/ffi/function.h>\nusing tvm::ffi::TensorView;\n";
const std::string kExport = "TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, Run);\n";

// A function of x and y, with this body.
std::string of_x_and_y(const std::string& body) {
  return kFunction + "void Run(TensorView x, TensorView y) {\n" + body + "}\n" + kExport;
}

const std::string kHalfRelu = of_x_and_y(
    "  const float* from = static_cast<const float*>(x.data_ptr());\n"
    "  float* to = static_cast<float*>(y.data_ptr());\n"
    "  for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] > 0 ? 0.5f * from[i] : 0;\n");

std::string examples() {
  return source_folder() + "/examples/backends/tvm_ffi";
}

// What doctor says where the package is missing, else empty.
std::string missing() {
  const auto json = nlohmann::json::parse(kernelbench({"doctor", "--json"}).out, nullptr, false);
  if (!json.is_object()) return "kernelbench doctor prints no object";
  for (const auto& finding : json["findings"])
    if (finding["what"] == "TVM-FFI")
      return finding["state"] == "ok" ? "" : finding["detail"].get<std::string>();
  return "kernelbench doctor does not know TVM-FFI";
}

class TvmFfi : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { reason_ = missing(); }
  void SetUp() override {
    if (!reason_.empty()) GTEST_SKIP() << reason_;
  }
  TemporaryFolder folder;

 private:
  static inline std::string reason_;
};

TEST_F(TvmFfi, TheExampleIsCorrect) {
  const auto json = eval_json("level1/19", examples() + "/level_1_problem_19_sample_0_kernel.cpp",
                              {"--pairs", "10"});
  EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
  EXPECT_EQ(json["backend"], "cpp");
  EXPECT_GT(json["time_us"].get<double>(), 0);
}

TEST_F(TvmFfi, WithoutASandboxToo) {
  const auto json =
      eval_json("level1/19", examples() + "/level_1_problem_19_sample_0_kernel.cpp",
                {"--no-timing", "--sandbox", "none", "--cache", folder.path() / "cache"});
  EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
}

// One `run` for all of them: the reference is loaded once.
TEST_F(TvmFfi, AFolderOfThemGetsItsVerdicts) {
  const std::string with_kb_run = "#include <kernelbench/kernel.h>\n" + kHalfRelu +
                                  "KB_EXPORT int kb_run(const kb_call* call) {\n"
                                  "  const TensorView x(&call->inputs[0]);\n"
                                  "  const float* from = kb_input_f32(call, 0);\n"
                                  "  for (int64_t i = 0; i < x.numel(); ++i)\n"
                                  "    kb_output_f32(call, 0)[i] = from[i] > 0 ? from[i] : 0;\n"
                                  "  return 0;\n}\n";
  struct Expected {
    std::string source, verdict, words;
  };
  const std::vector<Expected> samples = {
      {with_kb_run, "correct", ""},
      {kHalfRelu, "wrong_value", ""},
      {of_x_and_y("  TVM_FFI_THROW(ValueError) << \"not for \" << x.ndim() << \" axes\";\n"),
       "runtime_error", "run raised ValueError: not for 2 axes"},
      {of_x_and_y("  throw std::runtime_error(\"an ordinary one\");\n"), "runtime_error",
       "run raised InternalError: an ordinary one"},
      {kFunction + "void Run(TensorView x) {}\n" + kExport, "runtime_error",
       "run raised TypeError: "},
      {kFunction + "void Run(TensorView x, int64_t y) {}\n" + kExport, "runtime_error",
       "run raised TypeError: "},
      {of_x_and_y("  throw std::bad_alloc();\n"), "out_of_memory", "std::bad_alloc"},
      {of_x_and_y("  *static_cast<volatile int*>(nullptr) = 0;\n"), "runtime_error", "signal 11"},
      {kFunction + "void Run() {}\nTVM_FFI_DLL_EXPORT_TYPED_FUNC(walk, Run);\nint run;\n",
       "compile_error", "undefined reference to `__tvm_ffi_run'"},
      {kFunction + "void Run() {}\n", "static_reject", "exports no function run"}};
  for (std::size_t i = 0; i < samples.size(); ++i)
    folder.write("level_1_problem_19_sample_" + std::to_string(i) + "_kernel.cpp",
                 samples[i].source);
  const auto outcome = kernelbench({"run", folder.path().string(), "--size", "small", "--no-timing",
                                    "--no-stress", "--trials", "1", "--device", "cpu"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  auto store = kb::store::Store::open(folder.path() / "kernelbench.db");
  ASSERT_TRUE(store) << store.error();
  const auto rows = store->rows();
  ASSERT_TRUE(rows) << rows.error();
  ASSERT_EQ(rows->size(), samples.size());
  for (const auto& row : *rows) {
    const auto& expected = samples.at(static_cast<std::size_t>(row.key.sample));
    EXPECT_EQ(row.verdict, expected.verdict) << row.key.sample << row.result_json;
    EXPECT_THAT(row.result_json, HasSubstr(expected.words)) << row.key.sample;
  }
}

// What an evaluation passes, in which order: inputs with numbers among them, the state, outputs.
TEST_F(TvmFfi, ArgumentsComeInTheDocumentedOrder) {
  const auto problem =
      folder.write("problem.py",
                   "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n"
                   "    def __init__(self):\n        super().__init__()\n"
                   "        self.weight = nn.Parameter(torch.tensor([2.0, 3.0]))\n"
                   "        self.register_buffer('shift', torch.tensor([5.0]))\n\n"
                   "    def forward(self, count, x, factor, y, negate, nothing):\n"
                   "        out = (x * self.weight + y * count * factor) + self.shift\n"
                   "        return (-out if negate else out), y * 2\n\n\n"
                   "def get_inputs():\n"
                   "    return [3, torch.randn(7, 2), 0.5, torch.randn(7, 2), True, None]\n\n\n"
                   "def get_init_inputs():\n    return []\n");
  const auto candidate = folder.write(
      "kernel.cpp",
      kFunction +
          "void Run(int64_t count, TensorView x, double factor, TensorView y, bool negate,\n"
          "         tvm::ffi::AnyView nothing, TensorView weight, TensorView shift,\n"
          "         TensorView out, TensorView twice) {\n"
          "  TVM_FFI_CHECK(nothing == nullptr, TypeError) << \"not None\";\n"
          "  TVM_FFI_CHECK(x.size(0) == 7 && weight.size(0) == 2 && shift.ndim() == 1, "
          "TypeError);\n"
          "  auto at = [](const TensorView& t) { return static_cast<float*>(t.data_ptr()); };\n"
          "  for (int64_t i = 0; i < x.numel(); ++i) {\n"
          "    const float sum = at(x)[i] * at(weight)[i % 2] + at(y)[i] * count * factor + "
          "at(shift)[0];\n"
          "    at(out)[i] = negate ? -sum : sum;\n"
          "    at(twice)[i] = 2 * at(y)[i];\n"
          "  }\n}\n" +
          kExport);
  const auto json =
      eval_json(problem, candidate, {"--size", "public", "--no-timing", "--device", "cpu"});
  EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
}

TEST_F(TvmFfi, TheCudaExampleCompilesForSm90) {
  if (const auto nvcc = kb::build::find_nvcc(kb::build::nvcc_folders()); !nvcc)
    GTEST_SKIP() << nvcc.error();
  const auto outcome = kernelbench(
      {"compile", examples(), "--arch", "sm_90", "--cache", (folder.path() / "cache").string()});
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("4 of 4 samples are compiled"));
}

// These need no package.
TEST(TvmFfiAlone, OneThatExportsNothingIsRejectedBeforeItIsBuilt) {
  TemporaryFolder folder;
  const auto candidate = folder.write("kernel.cpp", kFunction + "void Run() {}\n");
  const auto refused = kernelbench({"eval", "level1/19", candidate});
  EXPECT_EQ(refused.code, 2) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("exports no function run"));
  EXPECT_EQ(verdict_of(eval_json("level1/19", candidate)), "static_reject");
}

// A Python that knows of no such package.
TEST(TvmFfiAlone, WithoutThePackageOneSentenceSaysSo) {
  const char* python = std::getenv("KERNELBENCH_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "KERNELBENCH_PYTHON names no Python";
  TemporaryFolder folder;
  folder.write("level_1_problem_19_sample_0_kernel.cpp", kHalfRelu);
  const auto other =
      folder.write("python", "#!/bin/sh\n'" + std::string(python) +
                                 "' \"$@\" | sed 's/\"tvm_ffi\": \"[^\"]*\"/\"tvm_ffi\": \"\"/'\n");
  std::filesystem::permissions(other, std::filesystem::perms::owner_all);
  const auto outcome = kernelbench({"compile", folder.path().string(), "--python", other, "--cache",
                                    (folder.path() / "cache").string()});
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("Python has no package apache-tvm-ffi: run `make build`"));
}

}  // namespace
