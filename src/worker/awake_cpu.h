// Keeps a CPU awake for a worker that is stopped there and about to take a timed turn.
//
// Some milliseconds lie between a worker's stop and its turn while the device is filled and
// flushed. A virtual machine's CPU that idles so long goes back to the hypervisor, and whoever runs
// there next is woken late, and on caches that somebody else has used (docs/performance.md, "A cold
// CPU").
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace kb::worker {

class AwakeCpu {
 public:
  AwakeCpu();
  ~AwakeCpu();
  AwakeCpu(const AwakeCpu&) = delete;
  AwakeCpu& operator=(const AwakeCpu&) = delete;

  /// A thread of the lowest priority, which makes way for everything else, spins on that CPU until
  /// rest(), or for a second.
  void keep(int cpu);
  /// It stops, some 0.1 µs later: what runs in a control group of its own would share the CPU with
  /// it.
  void rest() { cpu_.store(kNone, std::memory_order_relaxed); }

 private:
  static constexpr int kNone = -1, kEnd = -2;
  void serve();

  std::atomic<int> cpu_{kNone};
  std::atomic<std::uint32_t> calls_{0};
  std::thread thread_;
};

}  // namespace kb::worker
