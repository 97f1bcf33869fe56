#include "profile/bound.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "build/files.h"
#include "profile/raw_page.h"

namespace kb::profile {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A launch that we measured on an H200: PyTorch's (raw_page_test.cpp), or kernels of our own, each
// made to be bad in one way: saxpy, bank conflicts, spills, a loop of FMAs, saxpy in one block.
Counters measured(const char* file, std::size_t launch) {
  const auto page = build::read_file(
      std::filesystem::path(KERNELBENCH_SOURCE_DIR "/tests/data/profile") / file, 1 << 20);
  return counters_of({parse_raw_page(page.value_or("")).value().at(launch)});
}

Launch launch_of(std::initializer_list<std::pair<Number, double>> numbers) {
  Launch launch{"k", {}};
  for (const auto& [number, value] : numbers) launch.numbers[number] = value;
  return launch;
}

std::string bound_of(std::initializer_list<std::pair<Number, double>> numbers) {
  return what_bounds(counters_of({launch_of(numbers)}));
}

TEST(Bound, OfPyTorchsKernels) {
  const auto bound = [](std::size_t i) { return what_bounds(measured("h200.raw.csv", i)); };
  EXPECT_THAT(bound(0), StartsWith("Bound by memory: DRAM is at 88 %")) << "though L2 is busier";
  EXPECT_THAT(bound(1), StartsWith("Bound by memory: DRAM is at 84 %"));
  EXPECT_THAT(bound(2), StartsWith("Bound by the multiprocessors, at 87 %"));
  EXPECT_THAT(bound(3), StartsWith("Bound by the tensor cores, which are busy 95 %"));
}

TEST(Bound, OfKernelsWithAFault) {
  const auto bound = [](std::size_t i) { return what_bounds(measured("h200_kernels.raw.csv", i)); };
  EXPECT_THAT(bound(0), StartsWith("Mostly bound by memory: DRAM is at 67 %"));
  EXPECT_THAT(bound(1), StartsWith("Bound by the L1 cache and shared memory, at 87 %"));
  EXPECT_THAT(bound(1), HasSubstr("Bank conflicts are 95 % of its accesses to shared memory."));
  EXPECT_THAT(bound(2),
              HasSubstr("55 % of its instructions are for local memory: registers spill"));
  EXPECT_THAT(bound(3), StartsWith("Mostly bound by the multiprocessors' instructions, at 76 %"));
  EXPECT_THAT(bound(3), Not(HasSubstr("conflicts")));
  EXPECT_THAT(bound(4), StartsWith("Bound by the launch: its one kernel takes 2.1 us"));
}

TEST(Bound, BusyIsNotYetTheLimit) {
  EXPECT_THAT(bound_of({{Number::duration_us, 100}, {Number::dram_percent, 70}}),
              StartsWith("Mostly bound by memory"));
  EXPECT_THAT(
      bound_of({{Number::duration_us, 100}, {Number::dram_percent, 61}, {Number::l2_percent, 79}}),
      StartsWith("Mostly bound by the L2 cache"))
      << "further apart than streaming makes them";
  EXPECT_THAT(
      bound_of({{Number::duration_us, 100}, {Number::l1_percent, 78}, {Number::sm_percent, 79}}),
      StartsWith("Mostly bound by the L1 cache and shared memory"));
}

TEST(Bound, ShortKernels) {
  EXPECT_THAT(bound_of({{Number::duration_us, 2}, {Number::dram_percent, 90}}),
              StartsWith("Bound by the launch: its one kernel takes 2.0 us"));
  const auto many =
      counters_of({launch_of({{Number::duration_us, 2}}), launch_of({{Number::duration_us, 3}})});
  EXPECT_THAT(what_bounds(many), StartsWith("Bound by launches: 2 kernels of 2.5 us"));
  EXPECT_EQ(what_bounds({}), "It launches no kernel in a call.");
}

TEST(Bound, IdleHardwareHasAReason) {
  EXPECT_THAT(bound_of({{Number::duration_us, 100},
                        {Number::sm_percent, 10},
                        {Number::waves, 0.06},
                        {Number::blocks, 8}}),
              StartsWith("Bound by too few blocks: the longest kernel's 8 fill 6 % of the GPU"));
  EXPECT_THAT(bound_of({{Number::duration_us, 100},
                        {Number::sm_percent, 40},
                        {Number::waves, 4},
                        {Number::occupancy_percent, 12},
                        {Number::registers, 255},
                        {Number::shared_bytes, 48'000}}),
              HasSubstr("only 12 % of the warps that fit are active (255 registers a thread, "
                        "48.0 KB of shared memory a block)"));
  EXPECT_THAT(bound_of({{Number::duration_us, 100},
                        {Number::sm_percent, 40},
                        {Number::dram_percent, 30},
                        {Number::occupancy_percent, 80}}),
              StartsWith("Bound by latency: neither memory (DRAM 30 %) nor the multiprocessors"));
  EXPECT_THAT(bound_of({{Number::duration_us, 100}}), HasSubstr("cannot be told"));
}

TEST(Bound, SpillsAndConflictsAreAdded) {
  const auto bound = [](double local, double conflicts) {
    return bound_of({{Number::duration_us, 100},
                     {Number::dram_percent, 90},
                     {Number::instructions, 1000},
                     {Number::local_instructions, local},
                     {Number::shared_wavefronts, 1000},
                     {Number::bank_conflicts, conflicts}});
  };
  EXPECT_THAT(bound(300, 0), HasSubstr("30 % of its instructions are for local memory"));
  EXPECT_THAT(bound(10, 0), Not(HasSubstr("local memory")));
  EXPECT_THAT(bound(0, 500), HasSubstr("Bank conflicts are 50 %"));
  EXPECT_THAT(bound(0, 50), Not(HasSubstr("conflicts")));
}

TEST(Counters, OfSeveralLaunches) {
  const auto counters = counters_of(
      {launch_of({{Number::duration_us, 10},
                  {Number::dram_percent, 90},
                  {Number::dram_bytes, 5},
                  {Number::registers, 16}}),
       launch_of(
           {{Number::duration_us, 30}, {Number::dram_percent, 10}, {Number::registers, 64}})});
  EXPECT_DOUBLE_EQ(*counters.total[Number::duration_us], 40);
  EXPECT_DOUBLE_EQ(*counters.total[Number::dram_percent], 30) << "by time";
  EXPECT_DOUBLE_EQ(*counters.total[Number::dram_bytes], 5);
  EXPECT_DOUBLE_EQ(*counters.total[Number::registers], 64) << "of the longest";
  EXPECT_FALSE(counters.total[Number::sm_percent]);
  const auto kernels = kernels_of(counters);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].launches, 2u);
  EXPECT_DOUBLE_EQ(kernels[0].duration_us, 40);
}

TEST(Counters, MeasuresAreInTheOrderOfTheirNumbers) {
  for (std::size_t i = 0; i < kNumbers; ++i)
    EXPECT_EQ(static_cast<std::size_t>(measures()[i].number), i) << measures()[i].key;
  EXPECT_THAT(metric_list(), StartsWith("gpu__time_duration.sum,dram__throughput.avg."));
}

}  // namespace
}  // namespace kb::profile
