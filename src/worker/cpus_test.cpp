#include "worker/cpus.h"

#include <gtest/gtest.h>

#include <span>
#include <thread>

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

}  // namespace
}  // namespace kb::worker
