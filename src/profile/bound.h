// What bounds a model's kernels, in a sentence, told from hardware counters.
//
// Percentages are of what the part could do in the kernels' own time, means weighted by duration.
// The first rule that fits decides:
//
//   no kernel                       nothing was launched in the call
//   short kernels                   a launch takes kShortUs or less on average
//   DRAM                            busy, and (almost) the busiest part
//   tensor cores                    likewise
//   L2, then L1 and shared memory   likewise
//   multiprocessors (issue, maths)  likewise
//   too few blocks                  the longest kernel fills less than kFewWaves of the GPU
//   too few warps                   kFewWarpsPercent or less are active
//   latency                         none of these: neither memory nor arithmetic is busy
//
// Busy is kBusyPercent, at its limit kNearPeakPercent, and almost the busiest within kTiePercent:
// what streams through DRAM keeps L2 busier still (on an H200 a ReLU has 88 and 91 %, an in-place
// saxpy 67 and 79 %), and what keeps the tensor cores or L1 busy the multiprocessors, whose number
// is the largest of many. Added where they hold: over kSpillShare of the instructions touch local
// memory, and over kConflictShare of the accesses to shared memory are bank conflicts.
#pragma once

#include <string>

#include "profile/launch.h"

namespace kb::profile {

// Nsight Compute's own guide: below 60 % a kernel waits for latencies, over 80 % it is at a limit.
inline constexpr double kBusyPercent = 60;
inline constexpr double kNearPeakPercent = 80;
inline constexpr double kTiePercent = 15;
// A launch costs the host 2 to 3 us, and the GPU about 1 us between kernels that depend on each
// other.
inline constexpr double kShortUs = 4;
inline constexpr double kFewWaves = 1;
inline constexpr double kFewWarpsPercent = 25;
inline constexpr double kSpillShare = 0.02;
inline constexpr double kConflictShare = 0.1;

/// One or more sentences, for a person or a model.
std::string what_bounds(const Counters& counters);

}  // namespace kb::profile
