#include "worker/timed_cpu.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

namespace kb::worker {
namespace {

using namespace std::chrono_literals;

bool may_use(pid_t thread, int cpu) {
  cpu_set_t set;
  return ::sched_getaffinity(thread, sizeof set, &set) == 0 &&
         CPU_ISSET(static_cast<unsigned>(cpu), &set);
}

int usable(pid_t thread) {
  cpu_set_t set;
  return ::sched_getaffinity(thread, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

// The thread that spins, as the kernel shows it: one of this process's, by its name.
struct Spinner {
  pid_t thread = 0;
  char state = '?';
};
std::optional<Spinner> spinner() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name, stat;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name != "timed-cpu") continue;
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

class TimedCpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (usable(0) < 2) GTEST_SKIP() << "one CPU cannot be shared";
  }
};

TEST_F(TimedCpuTest, TakesACpuFromItsProcessAndGivesItBack) {
  const int before = usable(0);
  {
    const auto cpu = TimedCpu::reserve(2);
    ASSERT_NE(cpu, nullptr);
    EXPECT_FALSE(may_use(0, cpu->number()));
    EXPECT_EQ(usable(0), before - 1);
    std::thread([&] { EXPECT_FALSE(may_use(0, cpu->number())); }).join();
  }
  EXPECT_EQ(usable(0), before);
}

TEST_F(TimedCpuTest, NeedsEnoughOfThem) {
  EXPECT_EQ(TimedCpu::reserve(usable(0) + 1), nullptr);
}

TEST_F(TimedCpuTest, BindsAProcess) {
  const auto cpu = TimedCpu::reserve(2);
  ASSERT_NE(cpu, nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_FALSE(may_use(child, cpu->number()));
  cpu->admit(child);
  EXPECT_TRUE(may_use(child, cpu->number()));
  EXPECT_EQ(usable(child), 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(TimedCpuTest, OfAnotherJudgeIsLeftToIt) {
  int ready[2], over[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(over), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto theirs = TimedCpu::reserve(2);
    const int number = theirs ? theirs->number() : -1;
    (void)!::write(ready[1], &number, sizeof number);
    char word;
    ::close(over[1]);
    (void)!::read(over[0], &word, 1);
    ::_exit(0);
  }
  int theirs = -1;
  ASSERT_EQ(::read(ready[0], &theirs, sizeof theirs), static_cast<ssize_t>(sizeof theirs));
  EXPECT_GE(theirs, 0);
  {
    const auto ours = TimedCpu::reserve(2);
    ASSERT_NE(ours, nullptr);
    EXPECT_NE(ours->number(), theirs);
  }
  ::close(over[1]);
  ::close(over[0]);
  ::waitpid(child, nullptr, 0);
  // With the process its claim has ended, too.
  const auto later = TimedCpu::reserve(2);
  ASSERT_NE(later, nullptr);
  EXPECT_EQ(later->number(), theirs);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(TimedCpuTest, SpinsAtTheLowestPriorityUntilItRests) {
  const auto cpu = TimedCpu::reserve(2);
  ASSERT_NE(cpu, nullptr);
  ASSERT_TRUE(comes_to('S'));  // it waits
  std::jthread again([&](const std::stop_token& end) {
    while (!end.stop_requested()) {
      cpu->keep_awake();
      std::this_thread::sleep_for(1ms);
    }
  });
  ASSERT_TRUE(comes_to('R'));
  const auto found = spinner();
  ASSERT_TRUE(found);
  EXPECT_EQ(::sched_getscheduler(found->thread), SCHED_IDLE);
  EXPECT_TRUE(may_use(found->thread, cpu->number()));
  EXPECT_EQ(usable(found->thread), 1);
  again.request_stop();
  again.join();
  cpu->rest();
  EXPECT_TRUE(comes_to('S'));
}

TEST_F(TimedCpuTest, DoesNotSpinForAnOwnerThatHasForgottenIt) {
  const auto cpu = TimedCpu::reserve(2);
  ASSERT_NE(cpu, nullptr);
  cpu->keep_awake();
  EXPECT_TRUE(comes_to('R'));
  EXPECT_TRUE(comes_to('S'));
}

TEST_F(TimedCpuTest, EndsAtAnyMoment) {
  for (int i = 0; i < 2000; ++i) {
    const auto cpu = TimedCpu::reserve(2);
    ASSERT_NE(cpu, nullptr);
    for (int k = 0; k < i % 5; ++k) {
      cpu->keep_awake();
      if (k % 2 != 0) cpu->rest();
      if (i % 7 == 0) std::this_thread::sleep_for(20us);
    }
  }
}

}  // namespace
}  // namespace kb::worker
