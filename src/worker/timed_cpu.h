// The CPU on which the workers of a GPU's judge take their timed turns.
//
// A GPU's call begins on a CPU, and between two turns of a worker lies the drawing of inputs, some
// 30 ms where these take gigabytes. A virtual machine's CPU that idles so long is lent to somebody
// else, and whoever runs on it next finds cold caches, or is moved to another CPU: a call of a
// small PyTorch model took 90 us in the place of 3, its process 330 us until it answered, and with
// this 20 and 110 (docs/performance.md). c0, whose turns follow each other at once, does not
// contain it, and a native worker pays less of it than Python does.
//
// So one CPU is taken from everything else of this process, and of what it starts; the main
// threads of both workers that are timed are bound to it; and while they are stopped a thread of
// the lowest priority spins there.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <thread>

#include "worker/file_descriptor.h"

namespace kb::worker {

class TimedCpu {
 public:
  /// The highest CPU that no other judge of this machine's network namespace has taken. Null where
  /// fewer than `fewest` can be shared, by affinity or by the container's quota.
  static std::unique_ptr<TimedCpu> reserve(int fewest = 4);
  ~TimedCpu();  ///< gives it back to this process's threads
  TimedCpu(const TimedCpu&) = delete;
  TimedCpu& operator=(const TimedCpu&) = delete;

  int number() const { return cpu_; }
  /// Binds a process's main thread to it. (Threads that this one makes later are bound, too, so
  /// that a worker comes here after its first calls.) A process may unbind itself, and is slower
  /// then.
  void admit(pid_t pid) const;
  /// Spins, until rest(), or until half a second has passed without another call of this.
  void keep_awake();
  /// Stops spinning, a microsecond later: nothing may share the CPU with a turn.
  void rest() { spinning_.store(false, std::memory_order_relaxed); }

 private:
  TimedCpu(int cpu, FileDescriptor claim);
  void spin();

  int cpu_;
  FileDescriptor claim_;  // a socket whose name is the CPU's
  std::atomic<std::uint32_t> calls_{0};
  std::atomic<bool> spinning_{false}, ended_{false};
  std::thread thread_;
};

}  // namespace kb::worker
