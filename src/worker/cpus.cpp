#include "worker/cpus.h"

#include <limits>
#include <string>

#include "device/cpu/affinity.h"
#include "sandbox/cgroup.h"

namespace kb::worker {
namespace {

constexpr std::size_t kFewestToSpin = 2;
constexpr double kLeastShareToSpin = 4;

}  // namespace

void restrict_cpus(sandbox::Command& command, unsigned threads) {
  const auto cpus = cpu::cpus_of(0);
  if (cpus.size() <= threads) return;
  std::string list;
  for (unsigned i = 0; i < threads; ++i) list += (i == 0 ? "" : ",") + std::to_string(cpus[i]);
  command.argv.insert(command.argv.begin(), {"/usr/bin/taskset", "-c", list});
}

bool may_spin() {
  static const double share =
      sandbox::cpu_limit().value_or(std::numeric_limits<double>::infinity());
  return cpu::cpus_of(0).size() >= kFewestToSpin && share >= kLeastShareToSpin;
}

}  // namespace kb::worker
