#include "sandbox/bubblewrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace kb::sandbox {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class BubblewrapArguments : public testing::Test {
 protected:
  std::vector<std::string> arguments(bool has_size = true) {
    auto result = bubblewrap_arguments({"/usr/bin/bwrap", has_size}, command, {10, 11, 12, 13, 14});
    EXPECT_TRUE(result) << result.error();
    return result.value_or(std::vector<std::string>{});
  }
  /// Where `parts` stand one after the other; -1 when they do not.
  static long position(const std::vector<std::string>& all, const std::vector<std::string>& parts) {
    const auto at = std::search(all.begin(), all.end(), parts.begin(), parts.end());
    return at == all.end() ? -1 : at - all.begin();
  }

  BubblewrapArguments() { command.argv = {"/bin/program", "--unshare-all", "x"}; }
  Command command;
};

TEST_F(BubblewrapArguments, NeverShowTheWholeRoot) {
  const auto all = arguments();
  for (const char* option : {"--bind", "--ro-bind", "--dev-bind", "--ro-bind-try"}) {
    EXPECT_EQ(position(all, {option, "/"}), -1);
  }
  EXPECT_THAT(all, Not(Contains("/etc")));
  EXPECT_THAT(all, Not(Contains("/sys")));
}

TEST_F(BubblewrapArguments, EndWithTheProgramBehindADoubleDash) {
  const auto all = arguments();
  EXPECT_EQ(position(all, {"--", "/bin/program", "--unshare-all", "x"}),
            static_cast<long>(all.size()) - 4);
}

TEST_F(BubblewrapArguments, MakeTheRootReadOnlyAfterEveryFolder) {
  command.read_only = {{"/usr/share", "/a", false}};
  command.writable = {{"/tmp", "/b", false}};
  const auto all = arguments();
  const long last = position(all, {"--remount-ro", "/"});
  EXPECT_GT(position(all, {"--ro-bind", "/usr/share", "/a"}), 0);
  EXPECT_GT(last, position(all, {"--ro-bind", "/usr/share", "/a"}));
  EXPECT_GT(last, position(all, {"--bind", "/tmp", "/b"}));
  EXPECT_GT(last, position(all, {"--tmpfs", "/home/nobody"}));
}

TEST_F(BubblewrapArguments, CoverInitAndMakeProcReadOnly) {
  const auto all = arguments();
  EXPECT_GT(position(all, {"--tmpfs", "/proc/1", "--remount-ro", "/proc"}),
            position(all, {"--proc", "/proc"}));
}

TEST_F(BubblewrapArguments, ShowADeviceAndKeepTheSystemsPartOfProcReadOnly) {
  command.device_nodes = {"/dev/nvidia7"};
  const auto all = arguments();
  const long proc = position(all, {"--proc", "/proc"});
  EXPECT_GT(position(all, {"--dev-bind", "/dev/nvidia7", "/dev/nvidia7"}), proc);
  EXPECT_EQ(position(all, {"--remount-ro", "/proc"}), -1);
  EXPECT_GT(position(all, {"--tmpfs", "/proc/1"}), proc);
  EXPECT_GT(position(all, {"--ro-bind-try", "/proc/sys", "/proc/sys"}), proc);
  EXPECT_EQ(position(all, {"--ro-bind-try", "/proc/self", "/proc/self"}), -1);
}

TEST_F(BubblewrapArguments, UseSizeOnlyWhereItExists) {
  command.limits.tmpfs_bytes = 12345;
  EXPECT_GT(position(arguments(true), {"--size", "12345", "--tmpfs", "/tmp"}), 0);
  EXPECT_THAT(arguments(false), Not(Contains("--size")));
}

TEST_F(BubblewrapArguments, RefuseARelativePath) {
  command.read_only = {{"relative", "", false}};
  const auto result = bubblewrap_arguments({"/usr/bin/bwrap", true}, command, {});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error(), HasSubstr("must be absolute"));
}

}  // namespace
}  // namespace kb::sandbox
