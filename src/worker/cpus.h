// Which CPUs a worker may run on.
#pragma once

#include <sys/types.h>

#include <span>
#include <vector>

#include "sandbox/sandbox.h"

namespace kb::worker {

/// Starts the command on the first `threads` of the CPUs that this process may use, so that
/// `--threads` binds code that asks for more threads, too. (It binds honest code: a process may
/// change its own affinity.) Nothing to do where there are no more CPUs.
void restrict_cpus(sandbox::Command& command, unsigned threads);

/// The CPUs that a thread may run on, in ascending order; empty where that cannot be read.
std::vector<int> cpus_of(pid_t thread);
/// From here on the thread, and those that it starts, run on these CPUs alone. False: they do not.
bool bind_to_cpus(pid_t thread, std::span<const int> cpus);

}  // namespace kb::worker
