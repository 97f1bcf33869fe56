#include "device/cpu/affinity.h"

#include <sched.h>
#include <unistd.h>

namespace kb::cpu {

std::vector<int> cpus_of(pid_t thread) {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(thread, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

bool bind_to_cpus(pid_t thread, std::span<const int> cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &set);
  return ::sched_setaffinity(thread, sizeof set, &set) == 0;
}

// Not bound where it could not be let go.
StayOn::StayOn(std::span<const int> cpus)
    : thread_(::gettid()), before_(cpus_of(0)), bound_(!before_.empty() && bind_to_cpus(0, cpus)) {}

StayOn::~StayOn() {
  if (bound_) bind_to_cpus(thread_, before_);
}

}  // namespace kb::cpu
