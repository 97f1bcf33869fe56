#include "device/cpu/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace kb::cpu {
namespace {

TEST(ThreadPool, RunsEachBlockOnce) {
  for (unsigned threads : {1U, 2U, 7U}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    for (std::size_t blocks : {0, 1, 2, 3, 100, 1000}) {
      std::vector<std::atomic<int>> runs(blocks);
      pool.parallel_for(blocks, [&](std::size_t block, unsigned thread) {
        ASSERT_LT(thread, threads);
        ++runs[block];
      });
      for (const auto& count : runs) ASSERT_EQ(count.load(), 1);
    }
  }
}

TEST(ThreadPool, HasAThreadForEachAvailableCpuByDefault) {
  EXPECT_GE(ThreadPool().size(), 1U);
}

TEST(ThreadPool, PublishesWhatTheCallerWroteAndWhatTheBodiesWrote) {
  ThreadPool pool(4);
  std::vector<long> in(64), out(64);  // unsynchronized: ThreadSanitizer checks the pool's fences
  for (int round = 0; round < 200; ++round) {
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = round + static_cast<long>(i);
    pool.parallel_for(in.size(), [&](std::size_t i, unsigned) { out[i] = 2 * in[i]; });
    for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], 2 * in[i]);
  }
}

TEST(ThreadPool, GivesEveryThreadANumberOfItsOwn) {
  ThreadPool pool(4);
  std::vector<int> inside(pool.size());  // a race if two threads had the same number
  for (int round = 0; round < 50; ++round) {
    pool.parallel_for(64, [&](std::size_t, unsigned thread) { ++inside[thread]; });
  }
  int total = 0;
  for (int count : inside) total += count;
  EXPECT_EQ(total, 50 * 64);
}

TEST(ThreadPool, RethrowsAndGoesOnWorking) {
  for (unsigned threads : {1U, 4U}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 20; ++round) {
      EXPECT_THROW(pool.parallel_for(100,
                                     [](std::size_t block, unsigned) {
                                       if (block % 3 == 1) throw std::runtime_error("block");
                                     }),
                   std::runtime_error);
      std::atomic<int> runs{0};
      pool.parallel_for(100, [&](std::size_t, unsigned) { ++runs; });
      EXPECT_EQ(runs.load(), 100);
    }
  }
}

TEST(ThreadPool, SleepsBetweenJobs) {
  ThreadPool pool(4);
  pool.parallel_for(8, [](std::size_t, unsigned) {});
  auto cpu_us = [] {
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1'000'000L + use.ru_utime.tv_usec +
           use.ru_stime.tv_usec;
  };
  long before = cpu_us();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(cpu_us() - before, 50'000);  // three spinning threads would use up to 600 ms
}

}  // namespace
}  // namespace kb::cpu
