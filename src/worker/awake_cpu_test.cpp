#include "worker/awake_cpu.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "device/cpu/affinity.h"

namespace kb::worker {
namespace {

using namespace std::chrono_literals;

// The thread that spins, as the kernel shows it: one of this process's, by its name.
struct Spinner {
  pid_t thread = 0;
  char state = '?';
};
std::optional<Spinner> spinner() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name, stat;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name != "awake-cpu") continue;
    std::getline(std::ifstream(task.path() / "stat"), stat);
    return Spinner{std::stoi(task.path().filename()), stat.at(stat.rfind(')') + 2)};
  }
  return std::nullopt;
}

bool comes_to(char state) {
  for (int i = 0; i < 1000; ++i) {
    if (const auto found = spinner(); found && found->state == state) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

TEST(AwakeCpu, SpinsThereAtTheLowestPriorityUntilItRests) {
  AwakeCpu awake;
  ASSERT_TRUE(comes_to('S'));
  for (const int cpu : cpu::cpus_of(0)) {
    std::jthread again([&](const std::stop_token& end) {  // a second could pass on a busy machine
      while (!end.stop_requested()) {
        awake.keep(cpu);
        std::this_thread::sleep_for(100ms);
      }
    });
    const pid_t thread = spinner()->thread;
    for (int i = 0; i < 1000 && cpu::cpus_of(thread) != std::vector<int>{cpu}; ++i)
      std::this_thread::sleep_for(10ms);
    EXPECT_EQ(cpu::cpus_of(thread), std::vector<int>{cpu});
    EXPECT_EQ(::sched_getscheduler(thread), SCHED_IDLE);
    ASSERT_TRUE(comes_to('R'));
    again.request_stop();
    again.join();
    awake.rest();
    EXPECT_TRUE(comes_to('S'));
  }
}

TEST(AwakeCpu, RestsWhereItIsForgotten) {
  AwakeCpu awake;
  awake.keep(cpu::cpus_of(0).front());
  EXPECT_TRUE(comes_to('R'));
  EXPECT_TRUE(comes_to('S'));
}

TEST(AwakeCpu, OutlastsACpuThatItMayNotUse) {
  const int cpu = cpu::cpus_of(0).front();
  AwakeCpu awake;
  awake.keep(CPU_SETSIZE - 1);
  ASSERT_TRUE(comes_to('S'));
  awake.keep(cpu);
  const auto is_there = [&] { return cpu::cpus_of(spinner()->thread) == std::vector<int>{cpu}; };
  for (int i = 0; i < 1000 && !is_there(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(is_there());
}

TEST(AwakeCpu, EndsAtAnyMoment) {
  const int cpu = cpu::cpus_of(0).back();
  for (int i = 0; i < 1000; ++i) {
    AwakeCpu awake;
    if (i % 4 > 0) awake.keep(cpu);
    if (i % 4 > 1) awake.rest();
    if (i % 4 > 2) awake.keep(cpu);
  }
  EXPECT_FALSE(spinner());
}

}  // namespace
}  // namespace kb::worker
