#include "worker/cpus.h"

#include <gtest/gtest.h>

#include <span>
#include <thread>
#include <vector>

#include "device/cpu/affinity.h"

namespace kb::worker {
namespace {

TEST(Cpus, AreNotForSpinningWhereThereIsOne) {
  std::thread([] {
    const auto cpus = cpu::cpus_of(0);
    ASSERT_TRUE(cpu::bind_to_cpus(0, std::span(cpus).first(1)));
    EXPECT_FALSE(may_spin());
  }).join();
}

TEST(Cpus, AreLeftForAsLongAsItIsSaid) {
  const auto all = cpu::cpus_of(0);
  for (const int cpu : all) {
    const OffCpu off(cpu);
    auto others = all;
    std::erase(others, cpu);
    EXPECT_EQ(static_cast<bool>(off), !others.empty());
    EXPECT_EQ(cpu::cpus_of(0), others.empty() ? all : others);
  }
  EXPECT_EQ(cpu::cpus_of(0), all);
}

TEST(Cpus, AreLeftByTheThreadThatSaidSo) {
  const auto all = cpu::cpus_of(0);
  auto off = std::make_unique<OffCpu>(all.front());
  std::thread([&] { off.reset(); }).join();
  EXPECT_EQ(cpu::cpus_of(0), all);
}

}  // namespace
}  // namespace kb::worker
