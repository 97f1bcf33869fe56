#include "worker/awake_cpu.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <thread>
#include <vector>

#include "device/cpu/affinity.h"
#include "worker/spinners.h"

namespace kb::worker {
namespace {

using namespace std::chrono_literals;

class AwakeCpuTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(comes_true([] { return spinners().empty(); }));
  }
};

TEST_F(AwakeCpuTest, SpinsThereAtTheLowestPriorityUntilItRests) {
  const auto awake = AwakeCpu::start();
  ASSERT_TRUE(awake);
  ASSERT_TRUE(comes_true([] { return spinners().size() == 1; }));
  const pid_t thread = spinners().front();
  for (const int cpu : cpu::cpus_of(0)) {
    std::jthread again([&](const std::stop_token& end) {  // a second could pass on a busy machine
      while (!end.stop_requested()) {
        awake->keep(cpu);
        std::this_thread::sleep_for(100ms);
      }
    });
    EXPECT_TRUE(comes_true([&] { return cpu::cpus_of(thread) == std::vector<int>{cpu}; }));
    EXPECT_EQ(::sched_getscheduler(thread), SCHED_IDLE);
    const auto before = ticks_of(thread);
    EXPECT_TRUE(comes_true([&] { return ticks_of(thread) > before; }));
    again.request_stop();
    again.join();
    awake->rest();
    EXPECT_TRUE(comes_true([&] { return sleeps(thread); }));
  }
}

TEST_F(AwakeCpuTest, RestsWhereItIsForgotten) {
  const auto awake = AwakeCpu::start();
  awake->keep(cpu::cpus_of(0).front());
  ASSERT_TRUE(comes_true([] { return spinners().size() == 1; }));
  const pid_t thread = spinners().front();
  EXPECT_TRUE(comes_true([&] { return !sleeps(thread); }));
  EXPECT_TRUE(comes_true([&] { return sleeps(thread); }));
}

TEST_F(AwakeCpuTest, OutlastsACpuThatItMayNotUse) {
  const auto awake = AwakeCpu::start();
  ASSERT_TRUE(comes_true([] { return spinners().size() == 1; }));
  const pid_t thread = spinners().front();
  awake->keep(CPU_SETSIZE - 1);
  EXPECT_TRUE(comes_true([&] { return sleeps(thread); }));
  EXPECT_EQ(cpu::cpus_of(thread), cpu::cpus_of(0));
  const int cpu = cpu::cpus_of(0).front();
  awake->keep(cpu);
  EXPECT_TRUE(comes_true([&] { return cpu::cpus_of(thread) == std::vector<int>{cpu}; }));
}

TEST_F(AwakeCpuTest, EndsAtAnyMoment) {
  const int cpu = cpu::cpus_of(0).back();
  for (int i = 0; i < 200; ++i) {
    const auto awake = AwakeCpu::start();
    if (i % 4 > 0) awake->keep(cpu);
    if (i % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(i % 3));
    if (i % 4 > 1) awake->rest();
    if (i % 4 > 2) awake->keep(cpu);
  }
  EXPECT_TRUE(comes_true([] { return spinners().empty(); }));
}

}  // namespace
}  // namespace kb::worker
