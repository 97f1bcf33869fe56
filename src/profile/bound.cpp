#include "profile/bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "profile/units.h"

namespace kb::profile {
namespace {

struct Part {
  Number number;
  const char* at_limit;  ///< {} is its percentage
  const char* busiest;
};

constexpr std::array kParts = {
    Part{Number::dram_percent,
         "Bound by memory: DRAM is at {:.0f} % of its peak, so only moving fewer bytes helps.",
         "Mostly bound by memory: DRAM is at {:.0f} % of its peak."},
    Part{Number::tensor_percent, "Bound by the tensor cores, which are busy {:.0f} % of the time.",
         "Mostly bound by the tensor cores, which are busy {:.0f} % of the time."},
    Part{Number::l2_percent,
         "Bound by the L2 cache, at {:.0f} % of its peak: reuse more in registers and shared "
         "memory.",
         "Mostly bound by the L2 cache, at {:.0f} % of its peak."},
    Part{Number::l1_percent,
         "Bound by the L1 cache and shared memory, at {:.0f} % of their peak: wider or fewer "
         "accesses help.",
         "Mostly bound by the L1 cache and shared memory, at {:.0f} % of their peak."},
    Part{Number::sm_percent,
         "Bound by the multiprocessors, at {:.0f} % of their peak: only fewer instructions help.",
         "Mostly bound by the multiprocessors' instructions, at {:.0f} % of their peak."},
};

std::string busy_part(const Numbers& total) {
  const auto percent = [&](const Part& part) { return total[part.number].value_or(0); };
  const double busiest = percent(*std::ranges::max_element(kParts, {}, percent));
  const double least = std::max(kBusyPercent, busiest - kTiePercent);
  for (const auto& part : kParts)
    if (const double value = percent(part); value >= least)
      return fmt::format(fmt::runtime(value >= kNearPeakPercent ? part.at_limit : part.busiest),
                         value);
  return {};
}

std::string why_idle(const Numbers& total) {
  const double sm = total[Number::sm_percent].value_or(0),
               dram = total[Number::dram_percent].value_or(0);
  const std::string idle = fmt::format(
      "neither memory (DRAM {:.0f} %) nor the multiprocessors ({:.0f} %) are busy", dram, sm);
  const auto& waves = total[Number::waves];
  if (waves && *waves < kFewWaves)
    return fmt::format(
        "Bound by too few blocks: the longest kernel's {:.0f} fill {:.0f} % of the GPU, and {}.",
        total[Number::blocks].value_or(0), *waves * 100, idle);
  const auto& warps = total[Number::occupancy_percent];
  if (warps && *warps <= kFewWarpsPercent)
    return fmt::format(
        "Bound by latency: {}, and only {:.0f} % of the warps that fit are active ({:.0f} "
        "registers a thread, {} of shared memory a block).",
        idle, *warps, total[Number::registers].value_or(0),
        bytes_text(total[Number::shared_bytes].value_or(0)));
  return fmt::format(
      "Bound by latency: {}; more independent work a thread, or more of it in flight, helps.",
      idle);
}

std::string notes(const Numbers& total) {
  std::string text;
  const double local = total[Number::local_instructions].value_or(0),
               instructions = total[Number::instructions].value_or(0);
  if (instructions > 0 && local > kSpillShare * instructions)
    text += fmt::format(
        " {:.0f} % of its instructions are for local memory: registers spill, or an array is "
        "indexed at run time.",
        std::min(local / instructions, 1.0) * 100);
  const double conflicts = total[Number::bank_conflicts].value_or(0),
               wavefronts = total[Number::shared_wavefronts].value_or(0);
  if (wavefronts > 0 && conflicts > kConflictShare * wavefronts)
    text += fmt::format(" Bank conflicts are {:.0f} % of its accesses to shared memory.",
                        std::min(conflicts / wavefronts, 1.0) * 100);
  return text;
}

}  // namespace

std::string what_bounds(const Counters& counters) {
  const std::size_t launches = counters.launches.size();
  if (launches == 0) return "It launches no kernel in a call.";
  const Numbers& total = counters.total;
  const auto& duration = total[Number::duration_us];
  if (duration && *duration / static_cast<double>(launches) <= kShortUs) {
    const double each = *duration / static_cast<double>(launches);
    return launches == 1 ? fmt::format(
                               "Bound by the launch: its one kernel takes {:.1f} us, about what "
                               "launching it takes.",
                               each)
                         : fmt::format(
                               "Bound by launches: {} kernels of {:.1f} us on average, about what "
                               "launching each takes; fuse them.",
                               launches, each);
  }
  const bool known = total[Number::dram_percent] || total[Number::sm_percent];
  if (!known) return "What bounds it cannot be told: the card gave no throughputs.";
  std::string text = busy_part(total);
  if (text.empty()) text = why_idle(total);
  return text + notes(total);
}

}  // namespace kb::profile
