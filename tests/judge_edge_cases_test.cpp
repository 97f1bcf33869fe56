// Cases in which the judge itself went wrong once: found by an adversarial review, kept here.

#include <gmock/gmock.h>

#include "run_command.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers

const std::string kTop = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n";
const std::vector<std::string> kValuesOnly = {"--size", "public", "--no-timing"};

std::string problem_of(const std::string& model, const std::string& inputs,
                       const std::string& init = "[]") {
  return kTop + model + "\ndef get_inputs():\n    return " + inputs +
         "\n\ndef get_init_inputs():\n    return " + init + "\n";
}

class JudgeEdgeCases : public testing::Test {
 protected:
  nlohmann::json judge(const std::string& problem, const std::string& candidate,
                       std::vector<std::string> more = kValuesOnly) {
    return eval_json(folder.write("problem.py", problem), folder.write("candidate.py", candidate),
                     more);
  }
  TemporaryFolder folder;
};

// Strides whose span wraps around 64 bits once made the judge read wild memory.
TEST_F(JudgeEdgeCases, StridesThatOverflowDoNotCrashTheJudge) {
  const auto json = judge(
      problem_of(
          "class Model(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n",
          "[torch.rand(2**24 + 1)]"),
      kTop +
          "import ctypes, sys, time\nclass ModelNew(nn.Module):\n    def forward(self, x):\n       "
          " y = "
          "torch.relu(x)\n        f = sys._getframe()\n        while 'arena' not in f.f_locals:\n  "
          "    "
          "      f = f.f_back\n        a = f.f_locals['arena']\n        rec = (ctypes.c_int64 * "
          "24).from_address(a.address + a.publications_offset)\n        go = "
          "ctypes.c_uint32.from_address(a.address)\n        done = "
          "ctypes.c_uint32.from_address(a.address + 64)\n        rec[0], rec[1], rec[2], rec[3], "
          "rec[4], "
          "rec[12] = y.data_ptr(), 1, 1, 1, y.shape[0], 1 << 40\n        self.keep = y\n        "
          "done.value "
          "= go.value\n        time.sleep(1000)\n");
  EXPECT_NE(verdict_of(json), "correct");
  EXPECT_NE(verdict_of(json), "infrastructure_error");
}

// State outside the buffers made float64 look wrong, and the tolerance infinite.
TEST_F(JudgeEdgeCases, ZerosAreWrongForAModelThatCarriesItsState) {
  const std::string model =
      "class Model(nn.Module):\n    def __init__(self, n, h, batch):\n        super().__init__()\n "
      "       "
      "self.hidden = torch.randn(batch, h)\n        self.i2h = nn.Linear(n + h, h)\n\n    def "
      "forward(self, x):\n        self.hidden = torch.tanh(self.i2h(torch.cat((x, self.hidden), "
      "dim=1)))\n        return self.hidden\n";
  const auto problem = problem_of(model, "[torch.randn(8, 64)]", "[64, 32, 8]");
  EXPECT_EQ(
      verdict_of(judge(problem, kTop + "class ModelNew(nn.Module):\n    def __init__(self, *a):\n  "
                                       "      super().__init__()\n\n    def forward(self, x):\n    "
                                       "    return torch.zeros(8, 32)\n")),
      "wrong_value");
  const auto same =
      judge(problem, problem + "\nModelNew = Model\n", {"--size", "public", "--pairs", "8"});
  EXPECT_EQ(verdict_of(same), "correct") << same.dump(1);
  EXPECT_EQ(same["tolerance"]["widened"], 1);
}

TEST_F(JudgeEdgeCases, OneNoisyOutputDoesNotFreeTheOthers) {
  const auto json = judge(
      problem_of("class Model(nn.Module):\n    def forward(self, x):\n        return F.softmax(x, "
                 "dim=-1), (x - x.mean()).mean()\n",
                 "[torch.rand(4, 100000)]"),
      kTop +
          "class ModelNew(nn.Module):\n    def forward(self, x):\n        return "
          "torch.zeros_like(x), torch.zeros(())\n");
  EXPECT_EQ(verdict_of(json), "wrong_value") << json.dump(1);
}

TEST_F(JudgeEdgeCases, ACandidateCannotExcuseItself) {
  const auto json = eval_json(
      "level1/19",
      folder.write("excuse.py",
                   kTop + "from kernelbench_worker.errors import WorkerError\nclass "
                          "ModelNew(nn.Module):\n    def forward(self, x):\n        raise "
                          "WorkerError('problem', 'not me')\n"),
      {"--no-timing"});
  EXPECT_EQ(verdict_of(json), "runtime_error") << json.dump(1);
}

TEST_F(JudgeEdgeCases, StressInputsThatTheReferenceRefusesAreLeftOut) {
  const auto problem = problem_of(
      "class Model(nn.Module):\n    def forward(self, p, t):\n        return "
      "F.binary_cross_entropy(p, t, reduction='none')\n",
      "[torch.rand(64, 128), torch.rand(64, 128)]");
  const auto json =
      judge(problem, problem + "\nModelNew = Model\n", {"--size", "public", "--pairs", "8"});
  EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
}

// The identity on [0, 1) is not ReLU, however large the sample that says so.
TEST_F(JudgeEdgeCases, ASampleOfTheInputsDoesNotTellWhatTheyAre) {
  const auto json = judge(
      problem_of(
          "class Model(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n",
          "[torch.rand(64, 32768)]"),
      kTop +
          "class ModelNew(nn.Module):\n    def forward(self, x):\n        if "
          "x.view(-1)[:65536].amin() >= 0:\n            return x\n        "
          "return torch.relu(x)\n",
      {"--size", "public", "--pairs", "8"});
  EXPECT_EQ(verdict_of(json), "wrong_value") << json.dump(1);
}

}  // namespace
