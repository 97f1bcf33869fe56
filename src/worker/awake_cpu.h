// Keeps a CPU awake for a worker that is stopped there and about to take a timed turn.
//
// Some milliseconds lie between a worker's stop and its turn while the device is filled and
// flushed. A virtual machine's CPU that idles so long goes back to the hypervisor, and whoever runs
// there next is woken late, and on caches that somebody else has used (docs/performance.md, "A cold
// CPU").
#pragma once

#include <memory>

namespace kb::worker {

/// A thread of the lowest priority, which makes way for everything else.
class AwakeCpu {
 public:
  /// Null where no thread can be had.
  static std::unique_ptr<AwakeCpu> start();
  /// Does not wait for the thread: on a busy CPU its turn to end may be seconds away.
  ~AwakeCpu();
  AwakeCpu(const AwakeCpu&) = delete;
  AwakeCpu& operator=(const AwakeCpu&) = delete;

  /// Spins on that CPU until rest(), or for a second.
  void keep(int cpu);
  /// Stops that some 0.1 µs later: with what runs in a control group of its own it would share the
  /// CPU.
  void rest();

 private:
  struct State;
  explicit AwakeCpu(std::shared_ptr<State> state) : state_(std::move(state)) {}
  static void serve(State& state);

  std::shared_ptr<State> state_;
};

}  // namespace kb::worker
