#include "device/cpu/memory.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "device/device.h"
#include "device/random.h"

namespace kb::cpu {
namespace {

std::vector<std::byte> noise(std::size_t bytes, std::uint64_t key) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(random_bits(key, i));
  return data;
}

const std::size_t kSizes[] = {0, 1, 7, 4096, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 1234567};

TEST(Copy, CopiesAllAndNothingElse) {
  ThreadPool pool(3);
  for (std::size_t size : kSizes) {
    std::vector<std::byte> from = noise(size, 1);
    std::vector<std::byte> to(size + 2, std::byte{0x55});
    cpu::copy(std::span(to).subspan(1, size), from, pool);
    EXPECT_EQ(to.front(), std::byte{0x55});
    EXPECT_EQ(to.back(), std::byte{0x55});
    EXPECT_TRUE(size == 0 || std::memcmp(to.data() + 1, from.data(), size) == 0);
  }
  std::vector<std::byte> two(2), three(3);
  EXPECT_THROW(cpu::copy(two, three, pool), std::invalid_argument);
}

TEST(Equal, FindsASingleBit) {
  ThreadPool pool(3);
  for (std::size_t size : kSizes) {
    std::vector<std::byte> a = noise(size, 2);
    std::vector<std::byte> b = a;
    EXPECT_TRUE(cpu::equal(a, b, pool));
    if (size == 0) continue;
    for (std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
      b[at] ^= std::byte{0x10};
      EXPECT_FALSE(cpu::equal(a, b, pool));
      b[at] = a[at];
    }
  }
}

TEST(Poison, IsNaNAndMinusOneAndStaysInside) {
  ThreadPool pool(2);
  std::vector<std::byte> memory(1 << 20);
  poison(std::span(memory).subspan(8, memory.size() - 16), pool);
  double d = 0;
  float f = 0;
  int i = 0;
  std::memcpy(&d, memory.data() + 8, sizeof d);
  std::memcpy(&f, memory.data() + memory.size() - 12, sizeof f);
  std::memcpy(&i, memory.data() + 500000, sizeof i);
  EXPECT_TRUE(std::isnan(d));
  EXPECT_TRUE(std::isnan(f));
  EXPECT_EQ(i, -1);
  EXPECT_EQ(memory[7], std::byte{0});
  EXPECT_EQ(memory[memory.size() - 8], std::byte{0});
}

TEST(Guard, AnyChangedByteShows) {
  for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{13}, kGuardBytes}) {
    std::vector<std::byte> band(size);
    write_guard(band, 42);
    EXPECT_TRUE(guard_intact(band, 42));
    for (std::size_t i = 0; i < size; ++i) {
      band[i] ^= std::byte{1};
      ASSERT_FALSE(guard_intact(band, 42)) << i;
      band[i] ^= std::byte{1};
    }
  }
}

TEST(Guard, DependsOnSecretAndPlace) {
  std::vector<std::byte> band(kGuardBytes), shifted(kGuardBytes);
  write_guard(band, 42);
  EXPECT_FALSE(guard_intact(band, 43));
  std::memcpy(shifted.data(), band.data() + 8, kGuardBytes - 8);  // an off-by-a-word copy
  std::memcpy(shifted.data() + kGuardBytes - 8, band.data(), 8);
  EXPECT_FALSE(guard_intact(shifted, 42));
}

TEST(LastLevelCache, IsPlausible) {
  EXPECT_GE(last_level_cache_bytes(), std::size_t{256} << 10);
  EXPECT_LE(last_level_cache_bytes(), std::size_t{512} << 20);
}

TEST(CacheFlusher, CoversTwiceTheCacheAndRestoresAffinity) {
  ThreadPool pool(2);
  CacheFlusher flusher(std::size_t{4} << 20, pool);
  EXPECT_GE(flusher.bytes(), std::size_t{8} << 20);
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  flusher.flush();
  flusher.flush();
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace kb::cpu
