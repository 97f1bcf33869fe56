// Which CPUs a worker may run on, and whether its judge may spin.
#pragma once

#include "sandbox/sandbox.h"

namespace kb::worker {

/// Starts the command on the first `threads` of the CPUs that this process may use, so that
/// `--threads` binds code that asks for more threads, too. (It binds honest code: a process may
/// change its own affinity.) Nothing to do where there are no more CPUs.
void restrict_cpus(sandbox::Command& command, unsigned threads);

/// May threads of this process spin while they wait? Where it has one CPU, or a container's share
/// of less than four, what spins takes the time of what is waited for.
bool may_spin();

}  // namespace kb::worker
