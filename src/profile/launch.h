// What a hardware profiler measures of a kernel, under our own names: Nsight Compute's differ from
// card to card. A number that a card or a version lacks is none, and spoils no other.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::profile {

enum class Number {
  duration_us,
  dram_percent,  ///< of what the memory could move in the kernel's time, as the next ones
  dram_bytes,    ///< read and written
  l2_percent,
  l1_percent,  ///< of the first-level cache and shared memory
  sm_percent,  ///< of the busiest part of the multiprocessors
  tensor_percent,
  occupancy_percent,  ///< warps that were active, of those that a multiprocessor can hold
  registers,          ///< of a thread
  blocks,
  threads,             ///< of a block
  waves,               ///< blocks, by how many the GPU holds at once
  shared_bytes,        ///< of a block
  instructions,        ///< of warps
  local_instructions,  ///< those that load from or store to local memory: spills, indexed arrays
  bank_conflicts,      ///< of shared memory
  shared_wavefronts,
};
inline constexpr std::size_t kNumbers = 17;

/// How the numbers of several launches become one.
enum class Across {
  sum,
  mean,    ///< weighted by duration
  longest  ///< that of the launch that took longest
};

struct Measure {
  Number number;
  std::string_view key;    ///< in JSON
  std::string_view label;  ///< for people
  std::string_view unit;   ///< "us", "%", "bytes" or empty
  Across across;
  bool add;  ///< several names: the parts of a sum; otherwise the largest counts
  /// Nsight Compute's; empty ones at the end.
  std::array<std::string_view, 4> names;
  double factor;  ///< from base units (ns, bytes, sectors …)
};

/// One for each Number, in their order.
std::span<const Measure> measures();
/// All names, with commas: what `ncu --metrics` takes.
std::string metric_list();

class Numbers {
 public:
  std::optional<double>& operator[](Number number) {
    return values_[static_cast<std::size_t>(number)];
  }
  const std::optional<double>& operator[](Number number) const {
    return values_[static_cast<std::size_t>(number)];
  }

 private:
  std::array<std::optional<double>, kNumbers> values_;
};

struct Launch {
  std::string name;  ///< of the kernel; printable, bounded
  Numbers numbers;
};

/// The launches of one call of a model.
struct Counters {
  std::vector<Launch> launches;  ///< in their order
  Numbers total;
};

Counters counters_of(std::vector<Launch> launches);

/// The launches of each kernel together, the one that took longest first.
struct Kernel {
  std::string name;
  std::size_t launches = 0;
  double duration_us = 0;
};
std::vector<Kernel> kernels_of(const Counters& counters);

}  // namespace kb::profile
