#include "worker/heap/heap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr std::uintptr_t kBase = std::uintptr_t{1} << 40;
constexpr std::size_t kMiB = std::size_t{1} << 20;

void* pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);
}
std::uintptr_t alloc(std::size_t size) {
  return reinterpret_cast<std::uintptr_t>(kb_heap_alloc(static_cast<ssize_t>(size), 0, nullptr));
}
void release(std::uintptr_t address) {
  kb_heap_free(pointer(address), 0, 0, nullptr);
}

class HeapTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(kb_heap_init(pointer(kBase), kMiB), 0); }
  void TearDown() override { ASSERT_EQ(kb_heap_used(), 0u); }
};

TEST_F(HeapTest, TakesTheLowestPlaceThatFits) {
  const auto a = alloc(1000), b = alloc(512), c = alloc(1);
  EXPECT_EQ(a, kBase);
  EXPECT_EQ(b, kBase + 1024);
  EXPECT_EQ(c, kBase + 1536);
  EXPECT_EQ(kb_heap_used(), 2048u);
  release(a);
  EXPECT_EQ(alloc(1025), kBase + 2048);  // too large for the hole
  EXPECT_EQ(alloc(1024), kBase);
  for (const auto address : {kBase, kBase + 1024, kBase + 1536, kBase + 2048}) release(address);
}

TEST_F(HeapTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(alloc(kMiB + 1), 0u);
  EXPECT_EQ(alloc(0), 0u);
  EXPECT_EQ(kb_heap_alloc(-1, 0, nullptr), nullptr);
  const auto all = alloc(kMiB);
  EXPECT_EQ(all, kBase);
  EXPECT_EQ(alloc(1), 0u);
  release(all);
}

TEST_F(HeapTest, IgnoresWhatIsNoPiece) {
  const auto a = alloc(512);
  kb_heap_free(nullptr, 0, 0, nullptr);
  release(a + 256);
  release(a);
  release(a);
  EXPECT_EQ(kb_heap_used(), 0u);
}

TEST_F(HeapTest, TakesAnotherRangeOnlyWhenNothingIsInUse) {
  const auto a = alloc(1);
  EXPECT_NE(kb_heap_init(pointer(kBase), kMiB), 0);
  release(a);
  EXPECT_NE(kb_heap_init(pointer(kBase + 8), kMiB), 0);
  EXPECT_EQ(kb_heap_init(pointer(kBase), 700), 0);  // rounded down
  EXPECT_EQ(alloc(513), 0u);
  release(alloc(512));
}

TEST_F(HeapTest, NeighboursCoalesceInAnyOrder) {
  std::vector<std::uintptr_t> pieces;
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    pieces.clear();
    while (const auto piece = alloc(kMiB / 64)) pieces.push_back(piece);
    EXPECT_EQ(pieces.size(), 64u);
    std::ranges::shuffle(pieces, random);
    for (const auto piece : pieces) release(piece);
    const auto all = alloc(kMiB);
    EXPECT_EQ(all, kBase);
    release(all);
  }
}

TEST_F(HeapTest, RandomUse) {
  std::mt19937 random(2);
  std::map<std::uintptr_t, std::size_t> pieces;
  for (int step = 0; step < 50'000; ++step) {
    if (pieces.empty() || random() % 2 == 0) {
      const std::size_t size = 1 + random() % (random() % 4 == 0 ? 100'000 : 3000);
      const auto address = alloc(size);
      if (address == 0) continue;
      ASSERT_EQ(address % 512, 0u);
      ASSERT_GE(address, kBase);
      ASSERT_LE(address + size, kBase + kMiB);
      const auto next = pieces.lower_bound(address);
      if (next != pieces.end()) {
        ASSERT_LE(address + size, next->first);
      }
      if (next != pieces.begin()) {
        const auto [before, length] = *std::prev(next);
        ASSERT_LE(before + length, address);
      }
      pieces.emplace(address, size);
    } else {
      const auto piece =
          std::next(pieces.begin(), static_cast<std::ptrdiff_t>(random() % pieces.size()));
      release(piece->first);
      pieces.erase(piece);
    }
  }
  std::size_t expected = 0;
  for (const auto& [address, size] : pieces) expected += (size + 511) / 512 * 512;
  EXPECT_EQ(kb_heap_used(), expected);
  for (const auto& [address, size] : pieces) release(address);
  const auto all = alloc(kMiB);
  EXPECT_EQ(all, kBase);
  release(all);
}

TEST_F(HeapTest, SeveralThreads) {
  std::vector<std::jthread> threads;
  for (unsigned seed = 0; seed < 4; ++seed)
    threads.emplace_back([seed] {
      std::mt19937 random(seed);
      std::vector<std::uintptr_t> pieces;
      for (int step = 0; step < 5'000; ++step) {
        if (pieces.size() < 10) {
          pieces.push_back(alloc(1 + random() % 10'000));
        } else {
          std::swap(pieces[random() % pieces.size()], pieces.back());
          release(pieces.back());
          pieces.pop_back();
        }
      }
      for (const auto piece : pieces) release(piece);
    });
  threads.clear();
  const auto all = alloc(kMiB);
  EXPECT_EQ(all, kBase);
  release(all);
}

}  // namespace
