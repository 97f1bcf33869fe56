#include "judge/cpu_draw.h"

#include <fstream>
#include <sstream>
#include <string>

namespace kb::judge {
namespace {

constexpr std::uint64_t kFewestTicks = 2;  // of 10 ms, as a rule; fewer say nothing
constexpr std::size_t kMostStatBytes = 64u << 10;
constexpr int kIdleFields[] = {3, 4};  // idle, iowait; what follows the eighth is in others already
constexpr int kFields = 8;

std::string read_stat() {
  std::ifstream file("/proc/stat");
  std::string text(kMostStatBytes, '\0');  // the CPUs come first
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace

std::map<int, CpuTicks> parse_cpu_ticks(std::string_view stat) {
  std::map<int, CpuTicks> cpus;
  std::istringstream lines{std::string(stat)};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("cpu") || line.starts_with("cpu ")) continue;
    std::istringstream words(line.substr(3));
    int cpu = -1;
    CpuTicks ticks;
    std::uint64_t field = 0;
    int count = 0;
    for (words >> cpu; count < kFields && words >> field; ++count) {
      ticks.all += field;
      if (count == kIdleFields[0] || count == kIdleFields[1]) ticks.idle += field;
    }
    if (cpu >= 0 && count > kIdleFields[0]) cpus[cpu] = ticks;
  }
  return cpus;
}

std::optional<int> CpuDraw::draw(std::uint64_t choice) {
  if (cpus_.empty()) return std::nullopt;
  return draw(choice, parse_cpu_ticks(read_stat()));
}

std::optional<int> CpuDraw::draw(std::uint64_t choice, const std::map<int, CpuTicks>& now) {
  if (cpus_.empty()) return std::nullopt;
  std::vector<int> idle;
  for (const int cpu : cpus_) {
    auto& seen = seen_[cpu];
    if (const auto found = now.find(cpu); found != now.end()) {
      const CpuTicks& at = found->second;
      const std::uint64_t passed = at.all - seen.at.all, idled = at.idle - seen.at.idle;
      if (passed >= kFewestTicks) seen = {at, 10 * idled < 9 * passed};
    }
    if (!seen.busy) idle.push_back(cpu);
  }
  const auto& from = idle.empty() ? cpus_ : idle;
  return from[choice % from.size()];
}

}  // namespace kb::judge
