// What every timed turn has in common, whoever's it is: how it is made ready, and how it ends.
#pragma once

#include <expected>
#include <functional>
#include <span>

#include "device/device.h"
#include "worker/worker.h"

namespace kb::judge {

/// Makes a turn of a stopped worker ready: calls `fill`, which enqueues the writing of what the
/// worker is to see, flushes the caches, and rings. The device is watched from before the first of
/// these until nothing but the thaw is left to do, so that work which the worker has queued, and
/// which waits for a word of its memory, cannot run before the clock; if something that is not ours
/// has run, all is done once more, a little later. Returns how often it has: 2 means both times.
int arm_turn(worker::Worker& worker, Device& device, std::span<const worker::Call> calls,
             bool reseed, const std::function<void()>& fill = {});

/// How many null-stub turns tell what a turn costs without any call, for each number of calls. On a
/// GPU one takes a millisecond, and the time of a small kernel hangs on them.
inline int num_stub_turns(const Device& device) {
  return device.ends_turns() ? 40 : 12;
}

/// The turn that was armed, of one of our own workers, closed by the device and not checked.
std::expected<worker::Turn, worker::Fault> closed_turn(worker::Worker& worker, Device& device,
                                                       worker::milliseconds limit);

}  // namespace kb::judge
