#include "card/card.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

namespace kb::card {
namespace {

std::string key_of(const Card* card) {
  return card == nullptr ? "(none)" : std::string(card->key);
}

TEST(Card, EveryRowIsComplete) {
  std::set<std::string_view> keys;
  for (const Card& card : all()) {
    SCOPED_TRACE(card.key);
    EXPECT_TRUE(keys.insert(card.key).second);
    EXPECT_FALSE(card.name.empty());
    EXPECT_FALSE(card.architecture.empty());
    EXPECT_FALSE(card.target.empty());
    EXPECT_FALSE(card.memory_kind.empty());
    EXPECT_FALSE(card.source.empty());
    EXPECT_GT(card.multiprocessors, 0);
    EXPECT_GT(card.memory_bytes, 1e9);
    EXPECT_GT(card.memory_bytes_per_s, 1e11);
    EXPECT_GE(card.l2_bytes, 4u << 20);
    EXPECT_GE(card.shared_per_multiprocessor_bytes, card.shared_per_block_bytes);
    EXPECT_GE(card.registers_per_multiprocessor, 65536u);
    EXPECT_GE(card.threads_per_multiprocessor, 1024);
    EXPECT_GT(card.max_clock_mhz, 1000);
    EXPECT_GT(card.rates.fp32, 1e12);
    EXPECT_GT(card.rates.fp16, card.rates.fp32);
  }
}

// The vector units' rate is what multiprocessors, clock and 128 lanes give: catches a slip in any.
TEST(Card, RatesAgreeWithClockAndMultiprocessors) {
  for (const Card& card : all()) {
    SCOPED_TRACE(card.key);
    const bool half_lanes = card.target == "8.0" || card.target == "7.5";
    const double lanes = half_lanes ? 64 : 128;
    const double expected = 2 * lanes * card.multiprocessors * card.max_clock_mhz * 1e6;
    EXPECT_NEAR(card.rates.fp32 / expected, 1.0, 0.02);
  }
}

TEST(Card, IsFoundByKeyAliasAndName) {
  EXPECT_EQ(key_of(find("h200")), "h200");
  EXPECT_EQ(key_of(find("H200")), "h200");
  EXPECT_EQ(key_of(find("NVIDIA H200")), "h200");
  EXPECT_EQ(key_of(find("h100")), "h100");
  EXPECT_EQ(key_of(find("H100 SXM")), "h100");
  EXPECT_EQ(key_of(find("h100_sxm")), "h100");
  EXPECT_EQ(key_of(find("h100-pcie")), "h100-pcie");
  EXPECT_EQ(key_of(find("H100 NVL")), "h100-nvl");
  EXPECT_EQ(key_of(find("a100-80gb")), "a100");
  EXPECT_EQ(key_of(find("A100-40GB")), "a100-40");
  EXPECT_EQ(key_of(find("rtx 4090")), "rtx-4090");
  EXPECT_EQ(key_of(find("RTX3090")), "rtx-3090");
  EXPECT_EQ(key_of(find("Tesla T4")), "t4");
  EXPECT_EQ(key_of(find("AMD Instinct MI300X")), "mi300x");
}

TEST(Card, UnknownNamesAreNone) {
  for (const auto* name : {"", " ", "nvidia", "h", "h2", "h2000", "h200 h100", "none"})
    EXPECT_EQ(find(name), nullptr) << name;
}

TEST(Card, IsFoundByTheDriversName) {
  EXPECT_EQ(key_of(of_device("NVIDIA H200")), "h200");
  EXPECT_EQ(key_of(of_device("NVIDIA H100 80GB HBM3")), "h100");
  EXPECT_EQ(key_of(of_device("NVIDIA H100 PCIe")), "h100-pcie");
  EXPECT_EQ(key_of(of_device("NVIDIA H100 NVL")), "h100-nvl");
  EXPECT_EQ(key_of(of_device("NVIDIA GH200 480GB")), "gh200");
  EXPECT_EQ(key_of(of_device("NVIDIA A100-SXM4-40GB")), "a100-40");
  EXPECT_EQ(key_of(of_device("NVIDIA A100-PCIE-40GB")), "a100-40");
  EXPECT_EQ(key_of(of_device("NVIDIA A100-SXM4-80GB")), "a100");
  EXPECT_EQ(key_of(of_device("NVIDIA A100 80GB PCIe")), "a100-pcie");
  EXPECT_EQ(key_of(of_device("NVIDIA L40S")), "l40s");
  EXPECT_EQ(key_of(of_device("NVIDIA L4")), "l4");
  EXPECT_EQ(key_of(of_device("NVIDIA GeForce RTX 4090")), "rtx-4090");
  EXPECT_EQ(key_of(of_device("Tesla T4")), "t4");
  EXPECT_EQ(key_of(of_device("NVIDIA GB200")), "gb200");
  EXPECT_EQ(key_of(of_device("NVIDIA B200")), "b200");
}

// A sibling with other figures must not get this one's bounds.
TEST(Card, SiblingsAreNotTakenForTheListedCard) {
  EXPECT_EQ(of_device("NVIDIA GeForce RTX 3090 Ti"), nullptr);
  EXPECT_EQ(of_device("NVIDIA GeForce RTX 4090 Laptop GPU"), nullptr);
  EXPECT_EQ(of_device("NVIDIA H20"), nullptr);
  EXPECT_EQ(of_device("Intel(R) Xeon(R) Platinum 8488C"), nullptr);
  EXPECT_EQ(of_device(""), nullptr);
}

TEST(Card, DescriptionHasTheFiguresAndLeavesOutWhatThereIsNot) {
  const std::string h200 = describe(*find("h200"));
  EXPECT_THAT(h200, testing::HasSubstr("141 GB HBM3e, 4800 GB/s"));
  EXPECT_THAT(h200, testing::HasSubstr("compute capability 9.0"));
  EXPECT_THAT(h200, testing::HasSubstr("228 KiB, at most 227 KiB a block"));
  EXPECT_THAT(h200, testing::HasSubstr("BF16, tensor cores: 989.5 TFLOP/s"));
  const std::string t4 = describe(*find("t4"));
  EXPECT_THAT(t4, testing::Not(testing::HasSubstr("BF16")));
  EXPECT_THAT(t4, testing::HasSubstr("FP64: 250 GFLOP/s"));
  const std::string mi300x = describe(*find("mi300x"));
  EXPECT_THAT(mi300x, testing::HasSubstr("compute units: 304"));
  EXPECT_THAT(mi300x, testing::HasSubstr("64 a wavefront"));
}

}  // namespace
}  // namespace kb::card
