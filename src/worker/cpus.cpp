#include "worker/cpus.h"

#include <string>

#include "device/cpu/affinity.h"

namespace kb::worker {

void restrict_cpus(sandbox::Command& command, unsigned threads) {
  const auto cpus = cpu::cpus_of(0);
  if (cpus.size() <= threads) return;
  std::string list;
  for (unsigned i = 0; i < threads; ++i) list += (i == 0 ? "" : ",") + std::to_string(cpus[i]);
  command.argv.insert(command.argv.begin(), {"/usr/bin/taskset", "-c", list});
}

}  // namespace kb::worker
