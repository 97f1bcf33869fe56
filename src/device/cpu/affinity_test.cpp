#include "device/cpu/affinity.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <thread>

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

}  // namespace
}  // namespace kb::cpu
