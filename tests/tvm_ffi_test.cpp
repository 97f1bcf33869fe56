// Native candidates that export a TVM-FFI function, in place of kb_run.

#include <gmock/gmock.h>

#include "build/nvcc.h"
#include "run_command.h"

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
  nlohmann::json eval(const std::string& source, std::vector<std::string> more = {},
                      const std::string& problem = "level1/19") {
    for (const char* argument : {"--no-timing", "--no-stress", "--trials", "1"})
      more.emplace_back(argument);
    return eval_json(problem, folder.write("kernel.cpp", source), more);
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

TEST_F(TvmFfi, AWrongResultIsWrong) {
  const auto json = eval(kHalfRelu);
  EXPECT_EQ(verdict_of(json), "wrong_value") << json.dump(1);
}

TEST_F(TvmFfi, AnErrorIsTheKernelsWithItsWords) {
  for (const auto& [source, words] : std::vector<std::pair<std::string, std::string>>{
           {of_x_and_y("  TVM_FFI_THROW(ValueError) << \"not for \" << x.ndim() << \" axes\";\n"),
            "run raised ValueError: not for 2 axes"},
           {of_x_and_y("  throw std::runtime_error(\"an ordinary one\");\n"),
            "run raised InternalError: an ordinary one"},
           {kFunction + "void Run(TensorView x) {}\n" + kExport, "run raised TypeError: "},
           {kFunction + "void Run(TensorView x, int64_t y) {}\n" + kExport,
            "run raised TypeError: "}}) {
    const auto json = eval(source);
    EXPECT_EQ(verdict_of(json), "runtime_error") << json.dump(1);
    EXPECT_THAT(json["message"].get<std::string>(), HasSubstr(words));
  }
  EXPECT_EQ(verdict_of(eval(of_x_and_y("  throw std::bad_alloc();\n"))), "out_of_memory");
  EXPECT_EQ(verdict_of(eval(of_x_and_y("  *static_cast<volatile int*>(nullptr) = 0;\n"))),
            "runtime_error");
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
  const auto json = eval(
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
          kExport,
      {"--size", "public"}, problem);
  EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
}

TEST_F(TvmFfi, OneWithAKbRunIsCalledByIt) {
  const auto json = eval("#include <kernelbench/kernel.h>\n" + kHalfRelu +
                         "KB_EXPORT int kb_run(const kb_call* call) {\n"
                         "  const TensorView x(&call->inputs[0]);\n"
                         "  for (int64_t i = 0; i < x.numel(); ++i)\n"
                         "    kb_output_f32(call, 0)[i] = kb_input_f32(call, 0)[i] > 0 ? "
                         "kb_input_f32(call, 0)[i] : 0;\n"
                         "  return 0;\n}\n");
  EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
}

TEST_F(TvmFfi, RunJudgesAFolder) {
  std::filesystem::copy_file(examples() + "/level_1_problem_19_sample_0_kernel.cpp",
                             folder.path() / "level_1_problem_19_sample_0_kernel.cpp");
  folder.write("level_1_problem_19_sample_1_kernel.cpp", kHalfRelu);
  const auto outcome = kernelbench(
      {"run", folder.path().string(), "--size", "small", "--no-timing", "--trials", "1"});
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("2 results in"));
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr("wrong_value"));
}

TEST_F(TvmFfi, CompileBuildsAheadAndNamesWhatIsNotExported) {
  const auto cache = (folder.path() / "cache").string();
  folder.write("level_1_problem_19_sample_0_kernel.cpp", kHalfRelu);
  folder.write("level_1_problem_19_sample_1_kernel.cpp",
               kFunction + "void Run() {}\nTVM_FFI_DLL_EXPORT_TYPED_FUNC(walk, Run);\n");
  const auto first = kernelbench({"compile", folder.path().string(), "--cache", cache});
  EXPECT_EQ(first.code, 1) << first.err;
  EXPECT_THAT(first.out, HasSubstr("level1/19 sample 0   cpp            ok"));
  EXPECT_THAT(first.out, HasSubstr("undefined reference to `__tvm_ffi_run'"));
  const auto again = kernelbench({"compile", folder.path().string(), "--cache", cache});
  EXPECT_THAT(again.out, HasSubstr("level1/19 sample 0   cpp            cached"));
}

TEST_F(TvmFfi, TheCudaExampleCompilesForSm90) {
  if (const auto nvcc = kb::build::find_nvcc(kb::build::nvcc_folders()); !nvcc)
    GTEST_SKIP() << nvcc.error();
  const auto outcome = kernelbench(
      {"compile", examples(), "--arch", "sm_90", "--cache", (folder.path() / "cache").string()});
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("2 of 2 samples are compiled"));
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
  EXPECT_THAT(outcome.err, HasSubstr("Python has no package apache-tvm-ffi: run `make setup-dsl`"));
}

}  // namespace
