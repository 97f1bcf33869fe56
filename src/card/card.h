// GPUs by name, with the figures of their makers' datasheets: for prompts, for `problems show`, and
// for the bounds that follow from a device.
//
// All rates are dense (no structured sparsity) and at the boost clock that the datasheet assumes;
// a multiply-add counts as two operations. A zero means "the card has no such unit" or "not
// published". The table is compiled in (cards.cpp), so that a look-up cannot fail for want of a
// file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kb::card {

enum class Vendor { nvidia, amd };

/// Operations per second.
struct Rates {
  double fp64 = 0;         ///< vector units
  double fp64_matrix = 0;  ///< tensor or matrix cores
  double fp32 = 0;         ///< vector units
  double tf32 = 0;         ///< tensor or matrix cores, like all that follow
  double fp16 = 0;
  double bf16 = 0;
  double fp8 = 0;
  double int8 = 0;
};

/// One model of a GPU. Everything in it lives as long as the program.
struct Card {
  std::string_view key;          ///< "h100-pcie": what `--gpu` takes
  std::string_view name;         ///< "NVIDIA H100 PCIe"
  std::string_view aliases;      ///< more names that `find` takes, separated by spaces
  std::string_view driver_name;  ///< words that the driver's name has, e.g. "H100 PCIe"
  Vendor vendor = Vendor::nvidia;
  std::string_view architecture;  ///< "Hopper"
  std::string_view target;        ///< compute capability "9.0", or AMD's "gfx942"
  int multiprocessors = 0;        ///< SMs or CUs, those that are enabled
  int warp_size = 32;
  double memory_bytes = 0;  ///< as the maker counts: 1e9 bytes a GB
  double memory_bytes_per_s = 0;
  std::string_view memory_kind;  ///< "HBM3e"
  std::uint64_t l2_bytes = 0;    ///< the last-level cache is larger on some: see llc_bytes
  std::uint64_t llc_bytes = 0;   ///< AMD's Infinity Cache; 0: L2 is the last level
  std::uint64_t shared_per_multiprocessor_bytes = 0;  ///< most shared memory (LDS) of an SM or CU
  std::uint64_t shared_per_block_bytes = 0;           ///< the most that one block can ask for
  std::uint64_t registers_per_multiprocessor = 0;     ///< of 32 bits
  int threads_per_multiprocessor = 0;
  int max_clock_mhz = 0;  ///< boost
  Rates rates;
  std::string_view source;  ///< the documents that the figures are from
};

/// Every card, newest family first.
std::span<const Card> all();

/// By key, alias or name, whatever the case ("H100 SXM", "h100_sxm" and "h100-sxm" are one); null
/// for one that is not listed.
const Card* find(std::string_view name);

/// By the name that the driver gives a device, e.g. "NVIDIA H100 80GB HBM3"; null for one that is
/// not listed.
const Card* of_device(std::string_view driver_name);

/// The figures for people and models, one "name: value" a line. Rates that are 0 are left out.
std::string describe(const Card& card);

}  // namespace kb::card
