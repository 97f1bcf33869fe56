// Which CPUs a worker may run on, and which its judge keeps off.
#pragma once

#include <sys/types.h>

#include <vector>

#include "sandbox/sandbox.h"

namespace kb::worker {

/// Starts the command on the first `threads` of the CPUs that this process may use, so that
/// `--threads` binds code that asks for more threads, too. (It binds honest code: a process may
/// change its own affinity.) Nothing to do where there are no more CPUs.
void restrict_cpus(sandbox::Command& command, unsigned threads);

/// May threads of this process spin while they wait? Where it has one CPU, or a container's share
/// of less than four, what spins takes the time of what is waited for.
bool may_spin();

/// Keeps the thread that makes it off one CPU as long as it lives: who is bound there cannot move.
class OffCpu {
 public:
  explicit OffCpu(int cpu);
  ~OffCpu();
  OffCpu(const OffCpu&) = delete;
  OffCpu& operator=(const OffCpu&) = delete;
  /// Is it off? Not where it may use no other CPU.
  explicit operator bool() const { return off_; }

 private:
  pid_t thread_;
  std::vector<int> before_;
  bool off_;
};

}  // namespace kb::worker
