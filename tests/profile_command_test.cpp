// `profile` on a machine without a GPU: PyTorch's profiler, in the sandbox. What surrounds Nsight
// Compute is tested in src/profile/profiler_test.cpp, and the numbers on a machine with a GPU
// alone.

#include <gmock/gmock.h>

#include "run_command.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kSource = KERNELBENCH_SOURCE_DIR;
const std::string kRelu = kSource + "/examples/run_cpu/level_1_problem_19_sample_0_kernel.cpp";
constexpr const char* kModel =
    "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
    "        return x.clamp(min=0).contiguous()\n";

class ProfileCommand : public ::testing::Test {
 protected:
  Outcome profile(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"profile",
                                          "--device",
                                          "cpu",
                                          "--size",
                                          "small",
                                          "--keep",
                                          (folder.path() / "kept").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return kernelbench(arguments);
  }
  TemporaryFolder folder;
};

TEST_F(ProfileCommand, NamesTheOperatorsOfBothSides) {
  const auto model = folder.write("model.py", kModel);
  const auto words = profile({"level1/19", model});
  EXPECT_EQ(words.code, 0) << words.err << words.out;
  EXPECT_THAT(words.out, AllOf(HasSubstr("level1/19  model.py  (cpu, fp32, size small)"),
                               HasSubstr("no counters: hardware counters are read on a GPU"),
                               HasSubstr("candidate      One call takes"),
                               HasSubstr("PyTorch        One call takes"),
                               HasSubstr("kept/reference.trace.json")));
  const auto outcome = profile({"level1/19", model, "--json"});
  const auto json = nlohmann::json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << outcome.err << outcome.out;
  const auto& sides = json["profile"]["sides"];
  EXPECT_EQ(sides["candidate"]["operators"][0]["name"], "aten::clamp");
  EXPECT_EQ(sides["reference"]["operators"][0]["name"], "aten::clamp_min");
  EXPECT_GT(sides["candidate"]["time_us"].get<double>(), 0);
  EXPECT_EQ(json["backend"], "torch");
}

TEST_F(ProfileCommand, TheReferenceThroughTorchCompileWithItsCode) {
  const auto outcome = profile({"level1/19", "--reference", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const auto json = nlohmann::json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << outcome.err << outcome.out;
  EXPECT_FALSE(json.contains("candidate"));
  EXPECT_TRUE(json["profile"]["sides"].contains("reference"));
  EXPECT_GT(json["profile"]["sides"]["compiled"]["operators"].size(), 0u) << json.dump(1);
  std::ifstream code(folder.path() / "kept" / "compiled.code.txt");
  const std::string text(std::istreambuf_iterator<char>(code), {});
  EXPECT_THAT(text, HasSubstr("def call(")) << "what inductor generates";
  std::ifstream trace(folder.path() / "kept" / "compiled.trace.json");
  EXPECT_TRUE(nlohmann::json::parse(trace, nullptr, false).contains("traceEvents"));
}

TEST_F(ProfileCommand, EvalAddsItToTheResult) {
  const auto json = eval_json("level1/19", folder.write("model.py", kModel),
                              {"--profile", "--no-timing", "--device", "cpu"});
  EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
  EXPECT_THAT(json["profile"]["candidate"].get<std::string>(), HasSubstr("aten::clamp"));
  EXPECT_EQ(json["profile"]["profiler"], "PyTorch's profiler");
  EXPECT_FALSE(eval_json("level1/19", kRelu, {"--no-timing"}).contains("profile"));
}

// A candidate can do as it likes to its own profile, and to nothing else.
TEST_F(ProfileCommand, AHostileCandidateIsASentence) {
  const std::string head = "import os, sys, torch\nout = sys.argv[3]\n";
  const std::string model = "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        ";
  const auto raises = profile(
      {"level1/19", folder.write("r.py", head + model + "raise ValueError('\\x1b[31mno')\n")});
  EXPECT_EQ(raises.code, 1);
  EXPECT_THAT(raises.out,
              AllOf(HasSubstr("Not profiled: ValueError: no."), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(raises.out, HasSubstr("PyTorch        One call takes")) << "the other side is there";
  const auto leaves = profile({"level1/19", folder.write("l.py", head + model + "os._exit(3)\n")});
  EXPECT_THAT(leaves.out, HasSubstr("Not profiled: the profiled process exited with status 3"));
  const auto forges = profile(
      {"level1/19", folder.write("f.py", head +
                                             "open(out + '/answer.json', 'w').write('{\"ok\": "
                                             "true, \"time_us\": 1e999, \"operators\": []}')\n" +
                                             model + "os._exit(0)\n")});
  EXPECT_THAT(forges.out, HasSubstr("Not profiled: the profiled process"));
  const auto floods = profile(
      {"level1/19", folder.write("m.py", head +
                                             "for i in range(20000): open(f'{out}/{i}', 'w')\n"
                                             "import time; time.sleep(60)\n" +
                                             model + "return x\n")});
  EXPECT_THAT(floods.out, HasSubstr("over 10 000 files"));
}

TEST_F(ProfileCommand, WhatCannotBeDoneIsOneSentence) {
  const auto native = profile({"level1/19", kRelu});
  EXPECT_EQ(native.code, 1);
  EXPECT_THAT(native.out, HasSubstr("a native kernel on the CPU has neither"));
  const auto none = profile({"level1/19"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("profile takes a candidate's file, or --reference"));
  EXPECT_EQ(profile({"level1/19", kRelu, "--reference"}).code, 2);
  EXPECT_EQ(profile({"level1/19", "/nonexistent.cpp"}).code, 2);
  const auto broken = profile({"level1/19", folder.write("b.cpp", "int kb_run; broken\n")});
  EXPECT_EQ(broken.code, 2);
  EXPECT_THAT(broken.err, HasSubstr("does not compile or load"));
  EXPECT_EQ(std::count(broken.err.begin(), broken.err.end(), '\n'), 1) << broken.err;
}

}  // namespace
