// `eval`: what it prints, and what it says to bad input.

#include <gmock/gmock.h>

#include <chrono>

#include "run_command.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

const std::string kSource = KERNELBENCH_SOURCE_DIR;
const std::string kRelu = kSource + "/examples/run_cpu/level_1_problem_19_sample_0_kernel.cpp";

const std::string kTorchRelu =
    "import torch\nimport torch.nn as nn\n\n\nclass ModelNew(nn.Module):\n    def forward(self, "
    "x):\n        return torch.relu(x)\n";

TEST(Eval, MakesAsManyCallsATurnAsItIsAskedFor) {
  const auto json = eval_json("level1/19", kRelu, {"--pairs", "5", "--no-stress", "--calls", "3"});
  EXPECT_EQ(json["verdict"], "correct");
  EXPECT_EQ(json["calls_per_turn"], 3);
  EXPECT_EQ(kernelbench({"eval", "level1/19", kRelu, "--calls", "129"}).code, 2);
}

TEST(Eval, PrintsTheAgreedObject) {
  const auto json = eval_json("level1/19", kRelu, {"--pairs", "10"});
  for (const char* member : {"problem",
                             "candidate",
                             "backend",
                             "device",
                             "precision",
                             "verdict",
                             "compiled",
                             "correct",
                             "flags",
                             "time_us",
                             "reference_time_us",
                             "speedup",
                             "speedup_ci95",
                             "pairs",
                             "max_abs_error",
                             "max_rel_error",
                             "speed_of_light_us",
                             "seed",
                             "phases_ms",
                             "message",
                             "trials",
                             "tolerance",
                             "public"})
    EXPECT_TRUE(json.contains(member)) << member;
  EXPECT_EQ(json["problem"], "level1/19");
  EXPECT_EQ(json["backend"], "cpp");
  EXPECT_EQ(json["verdict"], "correct");
  EXPECT_EQ(json["correct"], true);
  EXPECT_EQ(json["public"]["correct"], true);
  ASSERT_EQ(json["speedup_ci95"].size(), 2u);
  EXPECT_LE(json["speedup_ci95"][0], json["speedup"]);
  EXPECT_GE(json["speedup_ci95"][1], json["speedup"]);
  EXPECT_EQ(json["trials"].size(), 12u) << "5 random and 7 stress trials";
  EXPECT_GT(json["speed_of_light_us"].get<double>(), 0);
  EXPECT_GT(json["work"]["bytes"].get<double>(), 0);
  EXPECT_GT(json["work"]["copy_bytes_per_s"].get<double>(), 0);
}

TEST(Eval, DrawsFreshInputsEveryTime) {
  const auto first = eval_json("level1/19", kRelu, {"--no-timing", "--no-stress"});
  const auto second = eval_json("level1/19", kRelu, {"--no-timing", "--no-stress"});
  EXPECT_NE(first["seed"], second["seed"]);
  EXPECT_TRUE(first["speedup"].is_null());
}

// The same file, the same protocol, the same code on both sides.
TEST(Eval, JudgesAPythonModel) {
  TemporaryFolder folder;
  const auto json = eval_json("level1/19", folder.write("model.py", kTorchRelu), {"--pairs", "10"});
  EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
  EXPECT_EQ(json["backend"], "torch");
  EXPECT_EQ(json["max_abs_error"], 0);
}

TEST(Eval, TakesAProblemFileWithTuplesBuffersDropoutAndKeywords) {
  TemporaryFolder folder;
  const std::string model =
      "import torch\nimport torch.nn as nn\n\nrows = 64\n\n\nclass Model(nn.Module):\n    def "
      "__init__(self, width, p=0.5):\n        super().__init__()\n"
      "        self.linear = nn.Linear(width, 32)\n        self.norm = nn.BatchNorm1d(32)\n        "
      "self.drop = nn.Dropout(p)\n\n"
      "    def forward(self, x, scale, labels):\n        y = self.drop(self.norm(self.linear(x) * "
      "scale))\n"
      "        return {'y': y, 'pair': (y.argmax(1), labels + 1)}\n\n\n"
      "def get_inputs():\n    return [torch.rand(rows, 48), 2.0, torch.randint(0, 9, "
      "(rows,))]\n\n\ndef get_init_inputs():\n    return [48]\n";
  const auto problem = folder.write("problem.py", model);
  const auto candidate = folder.write("candidate.py", model + "\nModelNew = Model\n");
  const auto json = eval_json(problem, candidate, {"--size", "public", "--pairs", "8"});
  EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
}

TEST(Eval, CopiesTheWeightsOfTheReference) {
  TemporaryFolder folder;
  // Draws something first, so that re-seeding alone would give other weights.
  const auto candidate =
      folder.write("late.py",
                   "import torch\nimport torch.nn as nn\n\n\nclass ModelNew(nn.Module):\n    def "
                   "__init__(self, n, m, multiplier, slope):\n"
                   "        super().__init__()\n        torch.rand(7)\n        self.gemm = "
                   "nn.Linear(n, m)\n        self.k, self.s = multiplier, slope\n\n"
                   "    def forward(self, x):\n        return "
                   "nn.functional.leaky_relu(self.gemm(x) * self.k, self.s)\n");
  EXPECT_EQ(verdict_of(eval_json("level2/12", candidate, {"--pairs", "8", "--no-stress"})),
            "correct");
}

TEST(Eval, KnowsTheOtherPrecisions) {
  const auto json = eval_json("level1/19", kSource + "/tests/data/relu_any.py",
                              {"--precision", "bf16", "--no-timing"});
  EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
  EXPECT_EQ(json["tolerance"]["atol"], 1e-2);
}

TEST(Eval, TakesConstantsFromTheCommandLine) {
  const auto json =
      eval_json("level1/19", kRelu, {"--set", "batch_size=3", "--set", "dim=17", "--no-timing"});
  EXPECT_EQ(verdict_of(json), "correct");
}

// The default size is made for a GPU: a newcomer's first mistake must not cost minutes.
TEST(Eval, SaysAtOnceThatAProblemDoesNotFit) {
  const auto start = std::chrono::steady_clock::now();
  const auto outcome = kernelbench({"eval", "level1/19", kRelu});
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("--size small"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(Eval, CompileErrorShowsTheCompilersWords) {
  TemporaryFolder folder;
  const auto json =
      eval_json("level1/19", folder.write("k.cpp",
                                          "#include <kernelbench/kernel.h>\nextern \"C\" int "
                                          "kb_run(const kb_call* call) { return nonsense; }\n"));
  EXPECT_EQ(verdict_of(json), "compile_error");
  EXPECT_EQ(json["compiled"], false);
  EXPECT_THAT(json["message"].get<std::string>(), HasSubstr("nonsense"));
}

// KernelBench's rule alone accepts zeros for a softmax over long rows; ours does not, and reports
// both.
TEST(Eval, GivesBothVerdicts) {
  TemporaryFolder folder;
  const auto softmax = folder.write(
      "softmax.py",
      "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n    def forward(self, "
      "x):\n        return torch.softmax(x, dim=1)\n\n\ndef get_inputs():\n    return "
      "[torch.rand(16, 98304)]\n\n\ndef get_init_inputs():\n    return []\n");
  const auto zeros =
      folder.write("zeros.py",
                   "import torch\nimport torch.nn as nn\n\n\nclass ModelNew(nn.Module):\n    def "
                   "forward(self, x):\n        return torch.zeros_like(x)\n");
  const auto own = eval_json(softmax, zeros, {"--size", "public", "--no-timing"});
  EXPECT_EQ(verdict_of(own), "wrong_value");
  EXPECT_EQ(own["public"]["correct"], true);
  const auto theirs =
      eval_json(softmax, zeros, {"--size", "public", "--no-timing", "--rules", "kernelbench"});
  EXPECT_EQ(theirs["correct"], true);
}

// What others wrote and a program hands in is judged, whatever it is.
TEST(Eval, TellsAProgramThatAFileIsNoCandidate) {
  TemporaryFolder folder;
  for (const auto& file : {folder.write("empty.py", ""), folder.write("prose.py", "No idea.\n"),
                           kSource + "/tests/data/no_entry_point.cpp"}) {
    const auto json = eval_json("level1/19", file);
    EXPECT_EQ(verdict_of(json), "static_reject") << file;
    EXPECT_EQ(json["correct"], false);
    EXPECT_FALSE(json["message"].get<std::string>().empty());
  }
}

struct BadInput {
  const char* name;
  std::vector<std::string> arguments;
  std::string says;
};

class EvalBadInput : public testing::TestWithParam<BadInput> {
 protected:
  static std::string fixture(const std::string& name) { return kSource + "/tests/data/" + name; }
};

TEST_P(EvalBadInput, IsOneSentenceAndExitCodeTwo) {
  std::vector<std::string> arguments = {"eval"};
  arguments.insert(arguments.end(), GetParam().arguments.begin(), GetParam().arguments.end());
  const auto outcome = kernelbench(arguments);
  EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().says));
  EXPECT_THAT(outcome.err, Not(HasSubstr("internal error")));
  EXPECT_LT(outcome.err.size(), 800u) << outcome.err;
}

const std::string kData = kSource + "/tests/data/";
INSTANTIATE_TEST_SUITE_P(
    All, EvalBadInput,
    testing::Values(
        BadInput{
            "NoSuchCandidate", {"level1/19", "/nonexistent/kernel.cpp"}, "/nonexistent/kernel.cpp"},
        BadInput{
            "NoSuchProblemFile", {"/nonexistent/problem.py", kRelu}, "/nonexistent/problem.py"},
        BadInput{"IdOutOfRange", {"level1/101", kRelu}, "101"},
        BadInput{"NoSuchLevel", {"level9/1", kRelu}, "9"},
        BadInput{"SyntaxError", {kData + "syntax_error.py", kRelu}, "line 4"},
        BadInput{"NoGetInputs", {kData + "no_get_inputs.py", kRelu}, "get_inputs"},
        BadInput{"RaisesInForward", {kData + "raises.py", kRelu}, "deliberate"},
        BadInput{"NoEntryPoint", {"level1/19", kData + "no_entry_point.cpp"}, "kb_run"},
        BadInput{"NoModelNew", {"level1/19", kData + "syntax_error.py"}, "ModelNew"},
        BadInput{"UnknownSuffix", {"level1/19", kSource + "/README.md"}, "README.md"},
        BadInput{"UnknownSize", {"level1/19", kRelu, "--size", "enormous"}, "enormous"},
        BadInput{"UnknownConstant", {"level1/19", kRelu, "--set", "nothing=1"}, "nothing"},
        BadInput{"BadAssignment", {"level1/19", kRelu, "--set", "nothing"}, "NAME=VALUE"},
        BadInput{"BadPrecision", {"level1/19", kRelu, "--precision", "fp8"}, "fp8"},
        BadInput{"BadPython", {"level1/19", kRelu, "--python", "/bin/false"}, "/bin/false"},
        BadInput{"NoElements", {"level1/19", kRelu, "--set", "dim=0"}, "no element"},
        BadInput{"TooLittleMemory", {"level1/19", kRelu, "--memory", "0.05"}, "--memory"},
        BadInput{"NoSuchDevice", {"level1/19", kRelu, "--device", "tpu"}, "tpu"},
        BadInput{"CppOnAGpu", {"level1/19", kRelu, "--device", "cuda:0"}, "--device cpu"},
        BadInput{"CudaOnTheCpu",
                 {"level1/19", kSource + "/examples/run_gpu/level_1_problem_19_sample_0_kernel.cu",
                  "--device", "cpu"},
                 "needs a GPU"},
        BadInput{"SeveralDevices", {"level1/19", kRelu, "--device", "cpu,cuda:0"}, "one device"},
        BadInput{"NoArguments", {}, "required"}),
    [](const auto& one) { return one.param.name; });

}  // namespace
