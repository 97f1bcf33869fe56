#include "profile/raw_page.h"

#include <gmock/gmock.h>

#include "build/files.h"

namespace kb::profile {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Measured by us on an H200 with Nsight Compute 2025.3.1: torch.relu and softmax of 4096 x 65536
// floats, a 4096 matrix product in fp32 and one in fp16. Columns of the device are left out.
std::string measured() {
  return build::read_file(KERNELBENCH_SOURCE_DIR "/tests/data/profile/h200.raw.csv", 1 << 20)
      .value_or("");
}

constexpr const char* kHead =
    "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"dram__bytes_read.sum\"\n"
    "\"\",\"\",\"ns\",\"byte\"\n";

TEST(RawPage, ReadsWhatNcuPrints) {
  const auto launches = parse_raw_page(measured());
  ASSERT_TRUE(launches) << launches.error();
  ASSERT_EQ(launches->size(), 4u);
  const auto& relu = (*launches)[0];
  EXPECT_THAT(relu.name, StartsWith("void at::vectorized_elementwise_kernel<4, at::<unnamed>::"));
  EXPECT_DOUBLE_EQ(*relu.numbers[Number::duration_us], 504.288);
  EXPECT_DOUBLE_EQ(*relu.numbers[Number::dram_percent], 87.51);
  EXPECT_DOUBLE_EQ(*relu.numbers[Number::dram_bytes], 1'073'759'488.0 + 1'049'624'320.0);
  EXPECT_DOUBLE_EQ(*relu.numbers[Number::l2_percent], 91.47);
  EXPECT_DOUBLE_EQ(*relu.numbers[Number::occupancy_percent], 85.96);
  EXPECT_DOUBLE_EQ(*relu.numbers[Number::registers], 28);
  EXPECT_DOUBLE_EQ(*relu.numbers[Number::blocks], 262'144);
  EXPECT_DOUBLE_EQ(*relu.numbers[Number::threads], 128);
  EXPECT_DOUBLE_EQ(*relu.numbers[Number::waves], 124.12);
  EXPECT_DOUBLE_EQ(*relu.numbers[Number::local_instructions], 0);
  const auto& product = (*launches)[3];
  EXPECT_EQ(product.name, "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT");
  EXPECT_DOUBLE_EQ(*product.numbers[Number::tensor_percent], 94.93) << "the larger of two";
  EXPECT_DOUBLE_EQ(*product.numbers[Number::shared_bytes], 213'188);
  EXPECT_DOUBLE_EQ(*product.numbers[Number::bank_conflicts], 126'291);
}

// The page has no column for a metric that the card or the version lacks.
TEST(RawPage, WhatIsMissingSpoilsNothing) {
  const auto launches = parse_raw_page(measured());
  ASSERT_TRUE(launches);
  EXPECT_FALSE((*launches)[0].numbers[Number::shared_wavefronts]);
  const auto partly =
      parse_raw_page(std::string(kHead) +
                     "\"0\",\"a\",\"(!) n/a\",\"1,024\"\n\"1\",\"b\",\"7\",\"nan\"\n"
                     "\"2\",\"c\"\n");
  ASSERT_TRUE(partly) << partly.error();
  ASSERT_EQ(partly->size(), 3u);
  EXPECT_FALSE((*partly)[0].numbers[Number::duration_us]);
  EXPECT_DOUBLE_EQ(*(*partly)[0].numbers[Number::dram_bytes], 1024);
  EXPECT_DOUBLE_EQ(*(*partly)[1].numbers[Number::duration_us], 0.007);
  EXPECT_FALSE((*partly)[1].numbers[Number::dram_bytes]);
  EXPECT_FALSE((*partly)[2].numbers[Number::duration_us]);
}

TEST(RawPage, ScaledUnitsAreScaledBack) {
  const auto launches = parse_raw_page(
      "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"dram__bytes_read.sum\"\n"
      "\"\",\"\",\"ms\",\"Gbyte\"\n\"0\",\"k\",\"1.5\",\"2.25\"\n");
  ASSERT_TRUE(launches) << launches.error();
  EXPECT_DOUBLE_EQ(*(*launches)[0].numbers[Number::duration_us], 1500);
  EXPECT_DOUBLE_EQ(*(*launches)[0].numbers[Number::dram_bytes], 2.25e9);
}

TEST(RawPage, PassesOverMessages) {
  const auto launches =
      parse_raw_page("==PROF== Connected to process 1\n==WARNING== Note\n" + std::string(kHead) +
                     "\n\"0\",\"f(int, \"\"x\"\")\nand on\",\"5\",\"6\"\r\n"
                     "==WARNING== something, else\n");
  ASSERT_TRUE(launches) << launches.error();
  ASSERT_EQ(launches->size(), 1u);
  EXPECT_EQ((*launches)[0].name, "f(int, \"x\")?and on");
  EXPECT_DOUBLE_EQ(*(*launches)[0].numbers[Number::dram_bytes], 6);
}

TEST(RawPage, NamesAreTame) {
  const auto launches =
      parse_raw_page(std::string(kHead) + "\"0\",\"\x1b[31mred\x1b]0;title\x07\xc2\x9b\xff" +
                     std::string(100'000, 'x') + "\",\"1\",\"1\"\n");
  ASSERT_TRUE(launches) << launches.error();
  const auto& name = (*launches)[0].name;
  EXPECT_LT(name.size(), 600u);
  EXPECT_THAT(name, StartsWith("red"));
  for (const char c : name) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  EXPECT_EQ(name.find("\xc2\x9b"), name.npos);
}

TEST(RawPage, SaysWhatIsWrong) {
  EXPECT_THAT(parse_raw_page("").error(), HasSubstr("no table"));
  EXPECT_THAT(parse_raw_page("==ERROR== no kernels\n").error(), HasSubstr("no table"));
  EXPECT_THAT(parse_raw_page("\"ID\",\"x\"\n").error(), HasSubstr("\"Kernel Name\""));
  EXPECT_THAT(parse_raw_page(std::string(kHead) + "\"0\",\"never closed").error(),
              HasSubstr("within a quote"));
  EXPECT_THAT(parse_raw_page("\"ID\"," + std::string(5000, ',')).error(), HasSubstr("broken"));
  EXPECT_THAT(parse_raw_page(std::string(kMaxPageBytes + 1, ' ')).error(), HasSubstr("16 MiB"));
}

TEST(RawPage, ReadsNoMoreThanAsked) {
  std::string page = kHead;
  for (int i = 0; i < 50; ++i) page += "\"1\",\"k\",\"1\",\"1\"\n";
  EXPECT_EQ(parse_raw_page(page, 20)->size(), 20u);
  EXPECT_EQ(parse_raw_page(page)->size(), 50u);
}

}  // namespace
}  // namespace kb::profile
