// The worker times itself, as other tools do (`time` of docs/protocol.md). The judge believes none
// of it: a candidate shares this process with the clock.
#pragma once

#include <expected>
#include <functional>
#include <string_view>
#include <vector>

#include "worker/fault.h"
#include "worker/native/device.h"

namespace kb::worker::native {

/// The next call, which may only have been enqueued when it returns.
using NextCall = std::function<std::expected<void, Fault>()>;

/// Microseconds. `mode`: "host" (a call and the wait for the device, by the steady clock), "event"
/// (the device's events around a call, its L2 cold), "do_bench" (Triton's procedure, which decides
/// on warm-up and repetitions itself; its median). Fault: the call's, `unsupported` where the
/// device has no events, `protocol` for another mode.
std::expected<std::vector<double>, Fault> time_calls(Device& device, std::string_view mode,
                                                     int warmup, int reps, const NextCall& call);

}  // namespace kb::worker::native
