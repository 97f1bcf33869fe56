// The figures. Where a datasheet gives a rate with structured sparsity alone, half of it stands
// here. Limits of a multiprocessor follow from the compute capability (CUDA C++ programming guide,
// "Compute capabilities") or AMD's CDNA architecture papers; the L2 is what the driver reports.
#include <array>

#include "card/card.h"

namespace kb::card {
namespace {

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;
constexpr std::uint64_t kKi = 1024;
constexpr std::uint64_t kMi = 1024 * kKi;

constexpr Rates tera(const Rates& r) {
  return {r.fp64 * kTera, r.fp64_matrix * kTera, r.fp32 * kTera, r.tf32 * kTera,
          r.fp16 * kTera, r.bf16 * kTera,        r.fp8 * kTera,  r.int8 * kTera};
}

/// What all cards of a family share.
constexpr Card blackwell() {
  return {.architecture = "Blackwell",
          .target = "10.0",
          .memory_kind = "HBM3e",
          .l2_bytes = 126 * kMi,
          .shared_per_multiprocessor_bytes = 228 * kKi,
          .shared_per_block_bytes = 227 * kKi,
          .registers_per_multiprocessor = 65536,
          .threads_per_multiprocessor = 2048};
}
constexpr Card hopper() {
  return {.architecture = "Hopper",
          .target = "9.0",
          .memory_kind = "HBM3",
          .l2_bytes = 50 * kMi,
          .shared_per_multiprocessor_bytes = 228 * kKi,
          .shared_per_block_bytes = 227 * kKi,
          .registers_per_multiprocessor = 65536,
          .threads_per_multiprocessor = 2048};
}
constexpr Card ada() {
  return {.architecture = "Ada Lovelace",
          .target = "8.9",
          .memory_kind = "GDDR6",
          .shared_per_multiprocessor_bytes = 100 * kKi,
          .shared_per_block_bytes = 99 * kKi,
          .registers_per_multiprocessor = 65536,
          .threads_per_multiprocessor = 1536};
}
constexpr Card ampere_data_center() {
  return {.architecture = "Ampere",
          .target = "8.0",
          .multiprocessors = 108,
          .memory_kind = "HBM2e",
          .l2_bytes = 40 * kMi,
          .shared_per_multiprocessor_bytes = 164 * kKi,
          .shared_per_block_bytes = 163 * kKi,
          .registers_per_multiprocessor = 65536,
          .threads_per_multiprocessor = 2048,
          .max_clock_mhz = 1410,
          .rates = tera({.fp64 = 9.7,
                         .fp64_matrix = 19.5,
                         .fp32 = 19.5,
                         .tf32 = 156,
                         .fp16 = 312,
                         .bf16 = 312,
                         .int8 = 624}),
          .source = "NVIDIA A100 Tensor Core GPU datasheet; NVIDIA A100 architecture whitepaper"};
}
constexpr Card ampere_graphics() {
  return {.architecture = "Ampere",
          .target = "8.6",
          .l2_bytes = 6 * kMi,
          .shared_per_multiprocessor_bytes = 100 * kKi,
          .shared_per_block_bytes = 99 * kKi,
          .registers_per_multiprocessor = 65536,
          .threads_per_multiprocessor = 1536};
}
constexpr Card instinct() {
  return {.vendor = Vendor::amd,
          .architecture = "CDNA 3",
          .target = "gfx942",
          .multiprocessors = 304,
          .warp_size = 64,
          .l2_bytes = 32 * kMi,
          .llc_bytes = 256 * kMi,
          .shared_per_multiprocessor_bytes = 64 * kKi,
          .shared_per_block_bytes = 64 * kKi,
          .registers_per_multiprocessor = 131072,
          .threads_per_multiprocessor = 2048,
          .max_clock_mhz = 2100,
          .rates = tera({.fp64 = 81.7,
                         .fp64_matrix = 163.4,
                         .fp32 = 163.4,
                         .tf32 = 653.7,
                         .fp16 = 1307.4,
                         .bf16 = 1307.4,
                         .fp8 = 2614.9,
                         .int8 = 2614.9})};
}

constexpr std::array kCards = [] {
  std::array<Card, 21> cards;
  std::size_t at = 0;
  const auto add = [&](Card family, std::string_view key, std::string_view name,
                       std::string_view aliases, std::string_view driver_name, double memory_gb,
                       double memory_gb_per_s) -> Card& {
    family.key = key;
    family.name = name;
    family.aliases = aliases;
    family.driver_name = driver_name;
    family.memory_bytes = memory_gb * kGiga;
    family.memory_bytes_per_s = memory_gb_per_s * kGiga;
    return cards[at++] = family;
  };
  const auto set = [](Card& card, int multiprocessors, int max_clock_mhz, const Rates& rates,
                      std::string_view source) {
    card.multiprocessors = multiprocessors;
    card.max_clock_mhz = max_clock_mhz;
    card.rates = tera(rates);
    card.source = source;
  };

  {
    Card& card = add(blackwell(), "b300", "NVIDIA B300", "hgx-b300", "B300", 270, 8000);
    card.architecture = "Blackwell Ultra";
    card.target = "10.3";
    set(card, 148, 1965,
        {.fp64 = 1.25,
         .fp64_matrix = 1.25,
         .fp32 = 75,
         .tf32 = 1125,
         .fp16 = 2250,
         .bf16 = 2250,
         .fp8 = 4500},
        "NVIDIA HGX platform datasheet, per GPU");
  }
  set(add(blackwell(), "gb200", "NVIDIA GB200 (one of its GPUs)", "gb200-nvl72", "GB200", 186,
          8000),
      152, 2062,
      {.fp64 = 40,
       .fp64_matrix = 40,
       .fp32 = 80,
       .tf32 = 1250,
       .fp16 = 2500,
       .bf16 = 2500,
       .fp8 = 5000,
       .int8 = 5000},
      "NVIDIA GB200 NVL72 datasheet, per GPU");
  set(add(blackwell(), "b200", "NVIDIA B200", "hgx-b200 b200-sxm", "B200", 180, 8000), 148, 1965,
      {.fp64 = 37,
       .fp64_matrix = 37,
       .fp32 = 75,
       .tf32 = 1125,
       .fp16 = 2250,
       .bf16 = 2250,
       .fp8 = 4500,
       .int8 = 4500},
      "NVIDIA HGX platform datasheet, per GPU");

  constexpr Rates kHopperSxm = {.fp64 = 34,
                                .fp64_matrix = 67,
                                .fp32 = 67,
                                .tf32 = 494.5,
                                .fp16 = 989.5,
                                .bf16 = 989.5,
                                .fp8 = 1979,
                                .int8 = 1979};
  {
    Card& card = add(hopper(), "gh200", "NVIDIA GH200 (144 GB)", "gh200-144", "GH200", 144, 4900);
    card.memory_kind = "HBM3e";
    card.l2_bytes = 60 * kMi;
    set(card, 132, 1980, kHopperSxm, "NVIDIA GH200 Grace Hopper Superchip datasheet");
  }
  {
    Card& card = add(hopper(), "h200", "NVIDIA H200", "h200-sxm", "H200", 141, 4800);
    card.memory_kind = "HBM3e";
    card.l2_bytes = 60 * kMi;
    set(card, 132, 1980, kHopperSxm, "NVIDIA H200 Tensor Core GPU datasheet");
  }
  set(add(hopper(), "h100-nvl", "NVIDIA H100 NVL", "", "H100 NVL", 94, 3900), 132, 1785,
      {.fp64 = 30,
       .fp64_matrix = 60,
       .fp32 = 60,
       .tf32 = 417.5,
       .fp16 = 835.5,
       .bf16 = 835.5,
       .fp8 = 1670.5,
       .int8 = 1670.5},
      "NVIDIA H100 Tensor Core GPU datasheet");
  {
    Card& card = add(hopper(), "h100-pcie", "NVIDIA H100 PCIe", "", "H100 PCIe", 80, 2000);
    card.memory_kind = "HBM2e";
    set(card, 114, 1755,
        {.fp64 = 26,
         .fp64_matrix = 51,
         .fp32 = 51,
         .tf32 = 378,
         .fp16 = 756.5,
         .bf16 = 756.5,
         .fp8 = 1513,
         .int8 = 1513},
        "NVIDIA H100 Tensor Core GPU datasheet (PCIe, 2023)");
  }
  set(add(hopper(), "h100", "NVIDIA H100 SXM", "h100-sxm h100-sxm5 h100-80gb", "H100", 80, 3350),
      132, 1980, kHopperSxm, "NVIDIA H100 Tensor Core GPU datasheet");

  {
    Card& card = add(ampere_data_center(), "a100-40", "NVIDIA A100 40 GB",
                     "a100-40gb a100-sxm4-40gb a100-pcie-40gb", "A100 40GB", 40, 1555);
    card.memory_kind = "HBM2";
  }
  add(ampere_data_center(), "a100-pcie", "NVIDIA A100 80 GB PCIe", "a100-80gb-pcie",
      "A100 80GB PCIe", 80, 1935);
  add(ampere_data_center(), "a100", "NVIDIA A100 SXM 80 GB",
      "a100-80 a100-80gb a100-sxm a100-sxm4-80gb", "A100", 80, 2039);

  {
    Card& card = add(ada(), "l40s", "NVIDIA L40S", "", "L40S", 48, 864);
    card.l2_bytes = 96 * kMi;
    set(card, 142, 2520,
        {.fp64 = 1.43,
         .fp32 = 91.6,
         .tf32 = 183,
         .fp16 = 366,
         .bf16 = 366,
         .fp8 = 733,
         .int8 = 733},
        "NVIDIA L40S datasheet");
  }
  {
    Card& card = add(ada(), "l40", "NVIDIA L40", "", "L40", 48, 864);
    card.l2_bytes = 96 * kMi;
    set(card, 142, 2490,
        {.fp64 = 1.41,
         .fp32 = 90.5,
         .tf32 = 90.5,
         .fp16 = 181,
         .bf16 = 181,
         .fp8 = 362,
         .int8 = 362},
        "NVIDIA L40 datasheet");
  }
  {
    Card& card = add(ada(), "l4", "NVIDIA L4", "", "L4", 24, 300);
    card.l2_bytes = 48 * kMi;
    set(card, 58, 2040,
        {.fp64 = 0.47,
         .fp32 = 30.3,
         .tf32 = 60,
         .fp16 = 121,
         .bf16 = 121,
         .fp8 = 242.5,
         .int8 = 242.5},
        "NVIDIA L4 Tensor Core GPU datasheet");
  }
  {
    // The tensor rates are those with sums in float32, which PyTorch uses.
    Card& card = add(ada(), "rtx-4090", "NVIDIA GeForce RTX 4090", "4090", "RTX 4090", 24, 1008);
    card.memory_kind = "GDDR6X";
    card.l2_bytes = 72 * kMi;
    set(card, 128, 2520,
        {.fp64 = 1.29,
         .fp32 = 82.6,
         .tf32 = 82.6,
         .fp16 = 165.2,
         .bf16 = 165.2,
         .fp8 = 330.3,
         .int8 = 660.6},
        "NVIDIA Ada GPU architecture whitepaper");
  }
  {
    Card& card =
        add(ampere_graphics(), "rtx-3090", "NVIDIA GeForce RTX 3090", "3090", "RTX 3090", 24, 936);
    card.memory_kind = "GDDR6X";
    set(card, 82, 1695,
        {.fp64 = 0.56, .fp32 = 35.6, .tf32 = 35.6, .fp16 = 71, .bf16 = 71, .int8 = 284},
        "NVIDIA Ampere GA102 GPU architecture whitepaper");
  }
  {
    Card& card = add(ampere_graphics(), "a10g", "NVIDIA A10G", "", "A10G", 24, 600);
    card.memory_kind = "GDDR6";
    set(card, 80, 1710, {.fp64 = 0.55, .fp32 = 35, .tf32 = 35, .fp16 = 70, .bf16 = 70, .int8 = 140},
        "NVIDIA A10G datasheet");
  }
  set(add({.architecture = "Turing",
           .target = "7.5",
           .memory_kind = "GDDR6",
           .l2_bytes = 4 * kMi,
           .shared_per_multiprocessor_bytes = 64 * kKi,
           .shared_per_block_bytes = 64 * kKi,
           .registers_per_multiprocessor = 65536,
           .threads_per_multiprocessor = 1024},
          "t4", "NVIDIA T4", "tesla-t4", "T4", 16, 320),
      40, 1590, {.fp64 = 0.25, .fp32 = 8.1, .fp16 = 65, .int8 = 130},
      "NVIDIA T4 datasheet; NVIDIA Turing GPU architecture whitepaper");

  {
    Card& card = add(instinct(), "mi350x", "AMD Instinct MI350X", "", "MI350X", 288, 8000);
    card.architecture = "CDNA 4";
    card.target = "gfx950";
    card.memory_kind = "HBM3E";
    card.shared_per_multiprocessor_bytes = card.shared_per_block_bytes = 160 * kKi;
    set(card, 256, 2200,
        {.fp64 = 72.1,
         .fp64_matrix = 72.1,
         .fp32 = 144.2,
         .fp16 = 2306.9,
         .bf16 = 2306.9,
         .fp8 = 4613.7,
         .int8 = 4613.7},
        "AMD Instinct MI350X datasheet; AMD CDNA 4 architecture whitepaper");
  }
  {
    Card& card = add(instinct(), "mi325x", "AMD Instinct MI325X", "", "MI325X", 256, 6000);
    card.memory_kind = "HBM3E";
    card.source = "AMD Instinct MI325X datasheet; AMD CDNA 3 architecture whitepaper";
  }
  {
    Card& card = add(instinct(), "mi300x", "AMD Instinct MI300X", "", "MI300X", 192, 5300);
    card.memory_kind = "HBM3";
    card.source = "AMD Instinct MI300X datasheet; AMD CDNA 3 architecture whitepaper";
  }
  return cards;
}();

}  // namespace

std::span<const Card> all() {
  return kCards;
}

}  // namespace kb::card
