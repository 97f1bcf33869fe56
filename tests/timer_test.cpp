// `--timer host`: the workers time themselves, for comparison with other tools. Whatever a
// candidate says of its time, the result is flagged and never verified.

#include <gmock/gmock.h>

#include <fstream>

#include "run_command.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers
using testing::HasSubstr;
using testing::Not;

const std::string kRelu =
    KERNELBENCH_SOURCE_DIR "/examples/run_cpu/level_1_problem_19_sample_0_kernel.cpp";
const std::string kHead = "import torch\nimport torch.nn as nn\n";
const std::string kTorchRelu =
    "class ModelNew(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n";

void expect_self_reported(const nlohmann::json& json) {
  EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
  EXPECT_TRUE(has_flag(json, "self_reported")) << json["flags"];
  EXPECT_EQ(json["timer"], "host");
  EXPECT_TRUE(json["turns"].empty());
  EXPECT_TRUE(json["solo_time_us"].is_null());
}

void expect_times(const nlohmann::json& json) {
  for (const char* name : {"speedup", "time_us", "reference_time_us"}) {
    ASSERT_TRUE(json[name].is_number()) << name << json.dump(1);
    EXPECT_GT(json[name], 0) << name;
  }
  ASSERT_EQ(json["speedup_ci95"].size(), 2u);
  EXPECT_LE(json["speedup_ci95"][0], json["speedup"]);
  EXPECT_GE(json["speedup_ci95"][1], json["speedup"]);
}

TEST(Timer, HostOnANativeKernel) {
  const auto json = eval_json("level1/19", kRelu, {"--timer", "host"});
  expect_self_reported(json);
  expect_times(json);
  EXPECT_EQ(json["trials"].size(), 12u) << "correctness and stress trials as always";
}

TEST(Timer, HostOnAPythonModel) {
  TemporaryFolder folder;
  const auto json = eval_json("level1/19", folder.write("model.py", kHead + kTorchRelu),
                              {"--timer", "host", "--no-stress"});
  expect_self_reported(json);
  expect_times(json);
  EXPECT_GT(json["speedup"], 0.2);  // the same code on both sides
  EXPECT_LT(json["speedup"], 5);
}

TEST(Timer, SealedIsTheDefault) {
  const auto json = eval_json("level1/19", kRelu, {"--pairs", "5", "--no-stress"});
  EXPECT_EQ(json["timer"], "sealed");
  EXPECT_FALSE(has_flag(json, "self_reported"));
}

TEST(Timer, WrongAnswersAreFoundAsAlways) {
  TemporaryFolder folder;
  const auto json = eval_json(
      "level1/19",
      folder.write("zeros.py", kHead + "class ModelNew(nn.Module):\n    def forward(self, x):\n"
                                       "        return torch.zeros_like(x)\n"),
      {"--timer", "host"});
  EXPECT_EQ(verdict_of(json), "wrong_value");
  EXPECT_TRUE(json["speedup"].is_null());
}

TEST(Timer, ARaceIsSaidToBeSelfReported) {
  const auto outcome =
      kernelbench({"eval", "level1/19", kRelu, "--size", "small", "--timer", "host"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("timer      host: times are self-reported"));
  EXPECT_THAT(outcome.out, HasSubstr("flag       self_reported"));
}

// It stops the clock that Python programs take, and then the very one that the worker holds.
TEST(Timer, AForgedClockIsStillOnlySelfReported) {
  TemporaryFolder folder;
  const auto liar = [&](const std::string& name, const std::string& lie) {
    return folder.write(name, kHead +
                                  "import sys\nimport time\nreal = time.perf_counter\n"
                                  "slow = lambda: real() / 1000\n" +
                                  lie + kTorchRelu);
  };
  const std::vector<std::string> host = {"--timer", "host", "--no-stress"};
  expect_self_reported(
      eval_json("level1/19", liar("patched.py", "time.perf_counter = slow\n"), host));
  const std::string deep =
      "for name, module in list(sys.modules.items()):\n"
      "    if name.endswith('kernelbench_worker.timing'):\n        module.perf_counter = ";
  const auto slowed = eval_json("level1/19", liar("slowed.py", deep + "slow\n"), host);
  expect_self_reported(slowed);
  EXPECT_GT(slowed["speedup"], 50) << "the lie works: that is why it does not count";
  EXPECT_TRUE(has_flag(slowed, "excessive_speedup"));
  const auto stopped = eval_json("level1/19", liar("stopped.py", deep + "lambda: 0\n"), host);
  expect_self_reported(stopped);
  EXPECT_TRUE(stopped["speedup"].is_null());
  EXPECT_EQ(stopped["time_us"], 0);
  const auto backwards =
      eval_json("level1/19", liar("backwards.py", deep + "lambda: -real()\n"), host);
  EXPECT_EQ(verdict_of(backwards), "tampering") << backwards.dump(1);
}

TEST(Timer, NoScoreIsVerifiedByIt) {
  TemporaryFolder folder;
  std::filesystem::copy_file(kRelu, folder.path() / "level_1_problem_19_sample_0_kernel.cpp");
  const auto run = [&](const std::string& timer) {
    const auto outcome = kernelbench({"run", folder.path().string(), "--size", "small",
                                      "--no-stress", "--pairs", "5", "--timer", timer});
    EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
    return outcome.out;
  };
  EXPECT_THAT(run("sealed"), Not(HasSubstr("self_reported")));
  EXPECT_THAT(run("host"), HasSubstr("self_reported")) << "another timer is another result";
  const auto score = kernelbench({"score", folder.path().string(), "--json"});
  const auto json = nlohmann::json::parse(score.out, nullptr, false);
  ASSERT_TRUE(json.is_array()) << score.out << score.err;
  for (const auto& fast : json[0]["fast_p"]) EXPECT_EQ(fast["verified"], 0) << fast;
  EXPECT_EQ(json[0]["fast_p"][0]["value"], 1);
  EXPECT_THAT(kernelbench({"score", folder.path().string()}).out,
              HasSubstr("1 speedup is self-reported"));
}

TEST(Timer, EventsNeedAGpu) {
  for (const char* timer : {"event", "do_bench"})
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"eval", "level1/19", kRelu},
          {"run", KERNELBENCH_SOURCE_DIR "/examples/run_cpu"}}) {
      auto arguments = command;
      arguments.insert(arguments.end(), {"--timer", timer, "--device", "cpu"});
      const auto outcome = kernelbench(arguments);
      EXPECT_EQ(outcome.code, 2) << outcome.out;
      EXPECT_THAT(outcome.err, HasSubstr(std::string("--timer ") + timer));
      EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    }
  const auto outcome = kernelbench({"eval", "level1/19", kRelu, "--timer", "sundial"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("sundial"));
}

}  // namespace
