// The CPU for both turns of a pair, or for a turn alone.
//
// How warm a CPU is makes a turn on a GPU longer or shorter by 40 µs and more, for seconds. Where
// each side has a CPU of its own that is an error which no number of pairs shows; on one that both
// share it cancels, and over many what is left of it is seen as noise. A bound worker cannot make
// way for what else runs there, so CPUs that are busy (compilers, imports, other judges) are not
// drawn while there are idle ones.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace kb::judge {

/// Times of one CPU since the machine's start, in ticks.
struct CpuTicks {
  std::uint64_t idle = 0, all = 0;
};
/// Of /proc/stat: the CPUs by number. Lines that are not of its form are left out.
std::map<int, CpuTicks> parse_cpu_ticks(std::string_view stat);

class CpuDraw {
 public:
  /// `cpus`: those to draw from; none: draw() gives nothing.
  explicit CpuDraw(std::vector<int> cpus) : cpus_(std::move(cpus)) {}
  /// One of those that have been idle for nine tenths of the time since the last call, or of all
  /// where none has, by `choice` modulo their number.
  std::optional<int> draw(std::uint64_t choice);
  /// The same by times that are given.
  std::optional<int> draw(std::uint64_t choice, const std::map<int, CpuTicks>& now);

 private:
  struct Seen {
    CpuTicks at;
    bool busy = false;
  };
  std::vector<int> cpus_;
  std::map<int, Seen> seen_;
};

}  // namespace kb::judge
