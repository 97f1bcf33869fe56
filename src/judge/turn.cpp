#include "judge/turn.h"

#include <chrono>
#include <thread>

namespace kb::judge {
namespace {

constexpr int kAttempts = 2;
constexpr std::chrono::milliseconds kRest{20};

}  // namespace

int arm_turn(worker::Worker& worker, Device& device, std::span<const worker::Call> calls,
             bool reseed, const std::function<void()>& fill) {
  for (int disturbed = 0; disturbed < kAttempts; ++disturbed) {
    if (disturbed > 0) std::this_thread::sleep_for(kRest);
    device.begin_watch();
    if (fill) fill();
    device.flush_caches();
    worker.arm(calls, reseed);
    if (device.end_watch()) return disturbed;
  }
  return kAttempts;
}

std::expected<worker::Turn, worker::Fault> closed_turn(worker::Worker& worker, Device& device,
                                                       worker::milliseconds limit) {
  return worker.run(limit, [&device] {
    device.begin_closing();
    const auto over = device.closed();
    device.release();
    return over;
  });
}

}  // namespace kb::judge
