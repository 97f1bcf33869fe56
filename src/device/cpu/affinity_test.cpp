#include "device/cpu/affinity.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace kb::cpu {
namespace {

TEST(Cpus, OfAThreadAreAscendingAndOnesThatItMayUse) {
  const auto cpus = cpus_of(0);
  ASSERT_FALSE(cpus.empty());
  EXPECT_TRUE(std::ranges::is_sorted(cpus));
  EXPECT_TRUE(bind_to_cpus(0, cpus));
  EXPECT_EQ(cpus_of(0), cpus);
}

TEST(Cpus, BindOneThreadAndThoseThatItStarts) {
  const auto before = cpus_of(0);
  std::vector<int> bound, started;
  std::thread([&] {
    ASSERT_TRUE(bind_to_cpus(::gettid(), std::span(before).last(1)));
    bound = cpus_of(::gettid());
    std::thread([&] { started = cpus_of(::gettid()); }).join();
  }).join();
  EXPECT_EQ(bound, std::vector<int>{before.back()});
  EXPECT_EQ(started, bound);
  EXPECT_EQ(cpus_of(0), before);
}

TEST(Cpus, OfNobodyAreNone) {
  EXPECT_TRUE(cpus_of(-1).empty());
  EXPECT_FALSE(bind_to_cpus(0, {}));
}

TEST(Cpus, AreStayedOnForAsLongAsItIsSaid) {
  const auto all = cpus_of(0);
  for (const int cpu : all) {
    auto others = all;
    std::erase(others, cpu);
    const StayOn elsewhere(others);
    EXPECT_EQ(static_cast<bool>(elsewhere), !others.empty());
    EXPECT_EQ(cpus_of(0), others.empty() ? all : others);
  }
  EXPECT_EQ(cpus_of(0), all);
}

TEST(Cpus, AreStayedOnByTheThreadThatSaidSo) {
  const auto all = cpus_of(0);
  auto last = std::make_unique<StayOn>(std::span(all).last(1));
  EXPECT_EQ(cpus_of(0), std::vector<int>{all.back()});
  std::thread([&] { last.reset(); }).join();
  EXPECT_EQ(cpus_of(0), all);
}

}  // namespace
}  // namespace kb::cpu
