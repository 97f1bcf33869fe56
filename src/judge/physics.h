// Bounds on the time of a call that follow from the problem and the device, never from the
// candidate.
//
// bytes = every input and weight once, and what of the outputs does not stay in the last-level
// cache (all caches are flushed before a turn, so inputs and weights come from memory). operations
// = PyTorch's count on the reference.
#pragma once

#include <optional>
#include <string>

#include "device/device.h"
#include "judge/ceilings.h"
#include "worker/spec.h"

namespace kb::judge {

/// Where a rate of operations is from.
enum class RateSource { unknown, datasheet, measured };

/// What a call has to do at least, and how fast the device is: a call's place in the roofline.
struct Work {
  double bytes = 0;             ///< from and to memory
  double operations = 0;        ///< 0: unknown
  double copy_bytes_per_s = 0;  ///< what a copy reaches on this device, read and written
  double operations_per_s = 0;  ///< of the problem's own precision; 0: unknown
  RateSource rate_source = RateSource::unknown;
  std::optional<Ceilings> measured = {};  ///< by `doctor --measure`, where that has been done
};

struct Bounds {
  /// Nothing can be faster: the datasheet's bandwidth, and a quarter of the operations (Winograd's
  /// algorithm saves about as much) at the rate of the cheapest precision that the tolerance
  /// admits. On a CPU, whose datasheet is not known: twice the bandwidth of a copy. What has been
  /// measured here plays no part.
  double impossible_us = 0;
  /// What a very good kernel comes near to: the bandwidth that a copy reaches here, and all
  /// operations at the rate of the problem's own precision, as measured here or else as in the
  /// datasheet.
  double realistic_us = 0;
  Work work;  ///< what they follow from
};

/// What the bounds need to know of a device.
struct DeviceFigures {
  std::string name;  ///< the driver's
  double cache_bytes = 0;
  double copy_bytes_per_us = 0;
};
DeviceFigures figures_of(Device& device);

Bounds bounds_of(const worker::ProblemSpec& spec, const DeviceFigures& device,
                 const std::string& precision, const std::optional<Ceilings>& measured);

}  // namespace kb::judge
