#include "worker/cpus.h"

#include <sched.h>

#include <string>

namespace kb::worker {

void restrict_cpus(sandbox::Command& command, unsigned threads) {
  const auto cpus = cpus_of(0);
  if (cpus.size() <= threads) return;
  std::string list;
  for (unsigned i = 0; i < threads; ++i) list += (i == 0 ? "" : ",") + std::to_string(cpus[i]);
  command.argv.insert(command.argv.begin(), {"/usr/bin/taskset", "-c", list});
}

std::vector<int> cpus_of(pid_t thread) {
  std::vector<int> cpus;
  cpu_set_t set;
  if (::sched_getaffinity(thread, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

bool bind_to_cpus(pid_t thread, std::span<const int> cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  return ::sched_setaffinity(thread, sizeof set, &set) == 0;
}

}  // namespace kb::worker
