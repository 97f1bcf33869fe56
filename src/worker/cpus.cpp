#include "worker/cpus.h"

#include <sched.h>

#include <string>

namespace kb::worker {

void restrict_cpus(sandbox::Command& command, unsigned threads) {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) <= static_cast<int>(threads))
    return;
  std::string list;
  for (int cpu = 0; cpu < CPU_SETSIZE && threads > 0; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    list += (list.empty() ? "" : ",") + std::to_string(cpu);
    --threads;
  }
  command.argv.insert(command.argv.begin(), {"/usr/bin/taskset", "-c", list});
}

}  // namespace kb::worker
