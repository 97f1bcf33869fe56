#include "sandbox/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "sandbox/process_tree.h"
#include "sandbox/spawn.h"

namespace kb::sandbox {
namespace {

TEST(Cgroups, LimitAndRemove) {
  const Cgroups cgroups = Cgroups::find(FreezerChoice::fastest);
  if (cgroups.places().empty()) GTEST_SKIP() << "no cgroup can be made here";
  std::vector<std::string> folders;
  {
    const auto cgroup = cgroups.make(64 << 20, 10);
    ASSERT_TRUE(cgroup);
    EXPECT_TRUE(cgroup->processes().empty());
    EXPECT_FALSE(cgroup->out_of_memory());
    SpawnRequest request;
    request.path = "/bin/sleep";
    request.argv = {"sleep", "1000"};
    request.cgroup2_folder = cgroup->version2_folder();
    request.cgroup1_tasks = cgroup->version1_tasks();
    auto spawned = spawn(request);
    ASSERT_TRUE(spawned) << spawned.error();
    EXPECT_EQ(cgroup->processes(), std::vector<pid_t>{spawned->pid});
    EXPECT_TRUE(cgroup->kill_all(std::chrono::seconds(10)));
    int status = 0;
    EXPECT_EQ(::waitpid(spawned->pid, &status, 0), spawned->pid);
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    for (const CgroupPlace& place : cgroups.places()) {
      const std::string folder = fmt::format("{}/kernelbench-{}-0", place.folder, ::getpid());
      EXPECT_TRUE(std::filesystem::exists(folder)) << folder;
      folders.push_back(folder);
    }
  }
  for (const std::string& folder : folders) EXPECT_FALSE(std::filesystem::exists(folder));
}

// Of folders that look like a hierarchy of each version.
TEST(Cgroups, LimitCpusByTheLeastFromTheGroupUp) {
  const std::filesystem::path mount = std::filesystem::path(testing::TempDir()) / "cpu_limits";
  const auto own = mount / "outer/inner";
  std::filesystem::create_directories(own);
  const auto write = [&](const std::filesystem::path& file, const char* text) {
    std::ofstream(mount / file) << text << '\n';
  };
  const auto limit = [&] { return cpu_limit_of(own, mount); };
  EXPECT_EQ(limit(), std::nullopt);
  write("outer/inner/cpu.max", "max 100000");
  EXPECT_EQ(limit(), std::nullopt);
  write("outer/cpu.max", "150000 100000");
  EXPECT_EQ(limit(), 1.5);
  write("outer/inner/cpu.max", "800000 100000");
  EXPECT_EQ(limit(), 1.5);
  write("outer/cpu.max", "nonsense");
  EXPECT_EQ(limit(), 8);
  std::filesystem::remove(own / "cpu.max");
  write("outer/inner/cpu.cfs_quota_us", "-1");
  write("outer/inner/cpu.cfs_period_us", "100000");
  EXPECT_EQ(limit(), std::nullopt);
  write("cpu.cfs_quota_us", "50000");
  write("cpu.cfs_period_us", "100000");
  EXPECT_EQ(limit(), 0.5);
  EXPECT_EQ(cpu_limit_of(mount, mount), 0.5);
  std::filesystem::remove_all(mount);
}

// Other judges, such as the tests that run beside this one, sweep the same folder: what one of them
// has locked, this sweep leaves to it.
void sweep_until_gone(const std::string& folder, const std::string& stale) {
  for (int i = 0; i < 500 && std::filesystem::exists(stale); ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    sweep_stale_cgroups(folder);
  }
}

TEST(Cgroups, SweepRemovesWhatDeadJudgesLeft) {
  const Cgroups cgroups = Cgroups::find(FreezerChoice::fastest);
  if (cgroups.places().empty()) GTEST_SKIP() << "no cgroup can be made here";
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ::waitpid(dead, nullptr, 0);

  const CgroupPlace& place = cgroups.places().front();
  const auto make = [&](pid_t owner, int n) {
    std::string path = fmt::format("{}/kernelbench-{}-{}", place.folder, owner, n);
    EXPECT_EQ(::mkdir(path.c_str(), 0755), 0) << path;
    return path;
  };
  const std::string stale = make(dead, 7);
  const std::string locked = make(dead, 8);
  const std::string living = make(::getpid(), 99);
  UniqueFd lock(::open(locked.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  const pid_t inside = ::fork();
  if (inside == 0) {
    std::ofstream(stale + "/cgroup.procs") << "0" << std::flush;
    ::kill(::getpid(), SIGSTOP);
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(inside, nullptr, WUNTRACED), inside);

  sweep_until_gone(place.folder, stale);
  EXPECT_FALSE(std::filesystem::exists(stale));
  EXPECT_FALSE(is_alive(inside));
  EXPECT_TRUE(std::filesystem::exists(locked));
  EXPECT_TRUE(std::filesystem::exists(living));
  ::waitpid(inside, nullptr, 0);
  lock.reset();
  ::rmdir(living.c_str());
  sweep_until_gone(place.folder, locked);
  EXPECT_FALSE(std::filesystem::exists(locked));
}

}  // namespace
}  // namespace kb::sandbox
