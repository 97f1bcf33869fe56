// `compile`: a folder of samples built ahead, with every error, on a machine without a GPU.

#include <gmock/gmock.h>

#include "build/hip.h"
#include "build/nvcc.h"
#include "run_command.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers
using testing::HasSubstr;

constexpr const char* kGood =
    "#include <kernelbench/kernel.h>\nextern \"C\" int kb_run(const kb_call*) { return 0; }\n";
constexpr const char* kBroken = "int unused;\nint f() { return undeclared; }\n";

class Compile : public ::testing::Test {
 protected:
  Outcome compile(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"compile", folder.path().string(), "--cache",
                                          (cache.path() / "cache").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return kernelbench(arguments);
  }
  nlohmann::json samples_of(const Outcome& outcome) {
    const auto json = nlohmann::json::parse(outcome.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << outcome.err << outcome.out;
    return json.is_object() ? json["samples"] : nlohmann::json::array();
  }

  TemporaryFolder folder, cache;
};

TEST_F(Compile, BuildsAllAndThenFindsThem) {
  folder.write("level_1_problem_19_sample_0_kernel.cpp", kGood);
  folder.write("level_1_problem_19_sample_1_kernel.py", "import torch\nclass ModelNew: pass\n");
  const auto first = compile();
  EXPECT_EQ(first.code, 0) << first.err << first.out;
  EXPECT_THAT(first.out, HasSubstr("level1/19 sample 0   cpp            ok"));
  EXPECT_THAT(first.out, HasSubstr("level1/19 sample 1   torch          ok"));
  EXPECT_THAT(first.out, HasSubstr("2 of 2 samples are compiled, 0 of them"));
  const auto again = compile();
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.out, HasSubstr("level1/19 sample 0   cpp            cached"));
}

TEST_F(Compile, CollectsEveryError) {
  folder.write("level_1_problem_19_sample_0_kernel.cpp", kBroken);
  folder.write("level_1_problem_19_sample_1_kernel.cpp", kGood);
  folder.write("level_1_problem_26_sample_0_kernel.cpp", "#error mine\n");
  folder.write("level_1_problem_26_sample_1_kernel.cpp", "");
  folder.write("level_1_problem_99999_sample_0_kernel.cpp", kGood);
  const auto table = compile();
  EXPECT_EQ(table.code, 1) << table.err;
  EXPECT_THAT(table.out, HasSubstr("kernel.cpp:2:18: error: 'undeclared' was not declared"));
  EXPECT_THAT(table.out, HasSubstr("kernel.cpp:1:2: error: #error mine"));
  EXPECT_THAT(table.out, HasSubstr("1 of 5 samples are compiled"));

  const auto outcome = compile({"--json", "--jobs", "2"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const auto samples = samples_of(outcome);
  ASSERT_EQ(samples.size(), 5u);
  const std::vector<std::string> expected = {"compile_error", "ok", "compile_error", "left_out",
                                             "left_out"};
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(samples[i]["status"], expected[i]) << samples[i];
  EXPECT_EQ(samples[1]["cached"], true);
  EXPECT_EQ(samples[0]["problem"], "level1/19");
  EXPECT_THAT(samples[3]["log"].get<std::string>(), HasSubstr("is empty"));
  EXPECT_THAT(samples[4]["log"].get<std::string>(), HasSubstr("99999"));

  EXPECT_EQ(compile({"--ids", "19", "--json"}).code, 1);
  EXPECT_EQ(samples_of(compile({"--ids", "26", "--json"})).size(), 2u);
}

TEST_F(Compile, CudaForANamedArchitecture) {
  if (const auto nvcc = kb::build::find_nvcc(kb::build::nvcc_folders()); !nvcc)
    GTEST_SKIP() << nvcc.error();
  folder.write("level_1_problem_19_sample_0_kernel.cu",
               std::string("__global__ void k() {}\n") + kGood);
  folder.write("level_1_problem_19_sample_1_kernel.cu", kBroken);
  const auto outcome = compile({"--arch", "sm_90", "--json"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const auto samples = samples_of(outcome);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0]["backend"], "cuda_cpp");
  EXPECT_EQ(samples[0]["status"], "ok") << samples[0];
  EXPECT_EQ(samples[1]["status"], "compile_error");
  EXPECT_THAT(samples[1]["log"].get<std::string>(), HasSubstr("kernel.cu(2): error: "));
  EXPECT_THAT(compile({"--arch", "sm_90"}).out, HasSubstr("cuda_cpp       cached"));
}

// The examples, with the real compiler of each maker where it is.
TEST_F(Compile, HipForEachMakersCards) {
  for (const char* sample : {"level_1_problem_19", "level_1_problem_47", "level_2_problem_63"}) {
    const std::string name = std::string(sample) + "_sample_1_kernel.hip";
    std::filesystem::copy(source_folder() + "/examples/backends/hip/" + name, folder.path() / name);
  }
  folder.write("level_1_problem_26_sample_0_kernel.hip",
               std::string("#include <hip/hip_runtime.h>\n") + kBroken);
  const auto hip = kb::build::hip_folders();
  const auto hipcc = kb::build::find_hipcc(hip);
  const auto headers = kb::build::find_hip_headers(hip);
  const auto nvcc = kb::build::find_nvcc(kb::build::nvcc_folders());
  for (const auto& [architecture, there] :
       {std::pair("gfx90a", hipcc.has_value()), std::pair("sm_90", headers && nvcc)}) {
    const auto outcome = compile({"--arch", architecture, "--json"});
    if (!there) {
      EXPECT_EQ(outcome.code, 2) << outcome.out;
      EXPECT_THAT(outcome.err, HasSubstr(": install "));
      continue;
    }
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    const auto samples = samples_of(outcome);
    ASSERT_EQ(samples.size(), 4u);
    for (const auto& sample : samples) {
      EXPECT_EQ(sample["backend"], "hip");
      const bool broken = sample["problem"] == "level1/26";
      EXPECT_EQ(sample["status"], broken ? "compile_error" : "ok") << sample;
      EXPECT_EQ(sample["log"].get<std::string>().find("undeclared") != std::string::npos, broken);
    }
  }
  if (!hipcc && !headers) GTEST_SKIP() << hipcc.error() << "; " << headers.error();
}

TEST_F(Compile, WhatIsMissingIsOneSentence) {
  folder.write("level_1_problem_19_sample_0_kernel.cu", kGood);
  const auto wrong = compile({"--arch", "hopper"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--arch takes a GPU architecture such as sm_90"));
  const auto none = kernelbench({"compile", "/nonexistent"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("/nonexistent"));
  if (const auto architecture = compile(); architecture.code == 2) {  // without a GPU
    EXPECT_THAT(architecture.err, HasSubstr("--arch sm_90"));
  }
  const auto cuda = compile({"--arch", "gfx942"});
  EXPECT_EQ(cuda.code, 2);
  EXPECT_THAT(cuda.err, HasSubstr("CUDA samples (.cu), which are not for AMD GPUs"));
}

TEST_F(Compile, HipNeedsToKnowWhichCard) {
  folder.write("level_1_problem_19_sample_0_kernel.hip", kGood);
  if (const auto outcome = compile(); outcome.code == 2) {  // without a GPU, or without HIP
    EXPECT_THAT(outcome.err, testing::AnyOf(HasSubstr("--arch gfx942"), HasSubstr(": install ")));
  }
}

}  // namespace
