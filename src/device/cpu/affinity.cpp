#include "device/cpu/affinity.h"

#include <sched.h>

#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace kb::cpu {
namespace {

constexpr std::size_t kFewestToSpin = 2;
constexpr double kLeastShareToSpin = 4;
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

}  // namespace

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

std::optional<double> parse_cpu_max(std::string_view text) {
  std::istringstream words{std::string(text)};
  double allowed_us = 0, of_us = 0;
  if (!(words >> allowed_us >> of_us) || of_us <= 0) return std::nullopt;  // "max" is no number
  return allowed_us / of_us;
}

bool may_spin() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string line;
  std::getline(file, line);
  return cpus_of(0).size() >= kFewestToSpin &&
         parse_cpu_max(line).value_or(kUnlimited) >= kLeastShareToSpin;
}

}  // namespace kb::cpu
