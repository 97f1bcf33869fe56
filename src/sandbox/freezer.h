// Stops every thread of every process of a sandbox, and knows when they have stopped.
//
// Three ways, each confirmed by the kernel and not merely asked for:
//   cgroup2  cgroup.freeze, until cgroup.events says `frozen 1`
//   cgroup1  freezer.state, until it reads FROZEN (not FREEZING)
//   signal   SIGSTOP to each process, until two walks in a row find no new process and every thread
//            of those known in state T
// Asking is asynchronous in all three: a running thread stops when it next leaves the kernel, one
// in a system call when that is interrupted.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace kb::sandbox {

class Freezer {
 public:
  virtual ~Freezer() = default;
  /// "cgroup2", "cgroup1" or "signal".
  virtual const char* name() const = 0;
  /// True once all has stopped. False after `limit`, or when nothing is left; it is running then.
  virtual bool freeze(std::chrono::milliseconds limit) = 0;
  /// Lets all go on: one write, or one SIGCONT per process, that of the program first. False when
  /// that failed.
  virtual bool thaw() = 0;
};

/// `folder` is an open cgroup folder that outlives the freezer.
std::unique_ptr<Freezer> cgroup2_freezer(int folder);
std::unique_ptr<Freezer> cgroup1_freezer(int folder);
/// `processes` lists all that are to stop, the one to be woken first at the front.
std::unique_ptr<Freezer> signal_freezer(std::function<std::vector<pid_t>()> processes);

}  // namespace kb::sandbox
