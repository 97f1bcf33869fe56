// Bounds on the time of a call that follow from the problem and the device, never from the
// candidate.
//
// bytes = every input and weight once, and what of the outputs does not stay in the last-level
// cache (all caches are flushed before a turn, so inputs and weights come from memory). operations
// = PyTorch's count on the reference.
#pragma once

#include <string>

#include "device/device.h"
#include "worker/spec.h"

namespace kb::judge {

/// What a call has to do at least, and how fast memory is here: a call's place in the roofline.
struct Work {
  double bytes = 0;             ///< from and to memory
  double operations = 0;        ///< 0: unknown
  double copy_bytes_per_s = 0;  ///< what a copy reaches on this device, read and written
};

struct Bounds {
  /// Nothing can be faster: the datasheet's bandwidth, and a quarter of the operations (Winograd's
  /// algorithm saves about as much) at the rate of the cheapest precision that the tolerance
  /// admits. On a CPU, whose datasheet is not known: twice the bandwidth of a copy.
  double impossible_us = 0;
  /// What a very good kernel comes near to: the bandwidth that a copy reaches here, and all
  /// operations at the datasheet's rate of the problem's own precision.
  double realistic_us = 0;
  Work work;  ///< what they follow from
};

Bounds bounds_of(const worker::ProblemSpec& spec, Device& device, const std::string& precision);

}  // namespace kb::judge
