// `--sandbox` where user namespaces are refused: a user namespace of our own in which no further
// one may be made.

#include <gmock/gmock.h>

#include "run_command.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers
using testing::HasSubstr;

const std::string kSource = KERNELBENCH_SOURCE_DIR;
const std::string kRelu = kSource + "/examples/run_cpu/level_1_problem_19_sample_0_kernel.cpp";

Outcome where_refused(const std::string& mode) {
  const std::string command = std::string("echo 0 > /proc/sys/user/max_user_namespaces && exec ") +
                              KERNELBENCH_BINARY + " eval level1/19 " + kRelu +
                              " --size small --no-stress --pairs 5 --trials 2 --json --sandbox " +
                              mode;
  return run_program("unshare", {"--user", "--map-root-user", "sh", "-c", command});
}

class SandboxModes : public testing::Test {
 protected:
  void SetUp() override {
    if (run_program("unshare", {"--user", "--map-root-user", "sh", "-c",
                                "echo 0 > /proc/sys/user/max_user_namespaces"})
            .code != 0)
      GTEST_SKIP() << "this machine lets nobody make a user namespace to test in";
  }
};

TEST_F(SandboxModes, AutoDegradesLoudlyAndFlagsTheResult) {
  const auto outcome = where_refused("auto");
  const auto json = nlohmann::json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << outcome.err << outcome.out;
  EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
  EXPECT_TRUE(has_flag(json, "unsandboxed"));
  EXPECT_THAT(outcome.err, HasSubstr("sandbox"));
}

TEST_F(SandboxModes, RequireRefuses) {
  const auto outcome = where_refused("require");
  EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
  EXPECT_FALSE(outcome.err.empty());
}

TEST(SandboxNone, RunsAndFlags) {
  const auto json =
      eval_json("level1/19", kRelu, {"--sandbox", "none", "--no-stress", "--pairs", "5"});
  EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
  EXPECT_TRUE(has_flag(json, "unsandboxed"));
}

}  // namespace
