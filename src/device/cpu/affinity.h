// Which CPUs a thread may run on, and how much of them.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kb::cpu {

/// The CPUs that a thread (0: the calling one) may run on, in ascending order; a container or
/// taskset may allow fewer than the machine has. Empty where that cannot be read, as on machines of
/// more than 1024 CPUs, whose mask is longer.
std::vector<int> cpus_of(pid_t thread);
/// From here on the thread, and those that it starts, run on these CPUs alone. False: they do not.
bool bind_to_cpus(pid_t thread, std::span<const int> cpus);
/// How many CPUs' time a control group may use, by its cpu.max; none: it has no limit.
std::optional<double> parse_cpu_max(std::string_view text);
/// May threads of this process spin while they wait? Where it has one CPU, or a container's share
/// of less than four, what spins takes the time of what is waited for.
bool may_spin();

}  // namespace kb::cpu
