// What a result may say of itself beside its verdict. All there is stands in one table, with its
// meaning: a flag that the table lacks does not compile.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace kb {

struct FlagFacts {
  std::string_view name;
  std::string_view meaning;    ///< a part of a sentence
  bool only_explains = false;  ///< the time or its interval: a verified score admits it
};

inline constexpr FlagFacts kFlags[] = {
    {"gpu_not_idle",
     "something that is not kernelbench's ran on the GPU before the clock was started"},
    {"noisy", "the pairs vary so much that the interval is wider than ±2 %", true},
    {"batch_dependent",
     "faster per call when several inputs are in sight; the time of single calls counts", true},
    {"baseline_disturbed",
     "the reference ran slower beside this candidate than alone; its time alone counts"},
    {"below_resolution",
     "its turns are too short beside what the doorbell varies by, or what forging it could save"},
    {"launch_bound", "most of the time goes into launching its kernels", true},
    {"reduced_precision", "its error against float64 is over ten times the reference's"},
    {"no_truth", "no float64 answer to compare with: no stress trials, no precision audit"},
    {"input_mutated", "it writes to its inputs or parameters"},
    {"nondeterministic", "two calls on one input differ"},
    {"excessive_speedup", "so fast that it should be read before it is believed"},
    {"faster_than_physics", "faster than memory can deliver the inputs"},
    {"unsandboxed", "it ran without a sandbox: believe it only if you trust its author"},
    {"library_call", "it is linked with a library of kernels", true},
    {"self_reported", "the times are the workers' own, which a candidate can forge"},
    {"stored_baseline",
     "the reference's time was stored earlier, maybe on another machine: no interval"},
};

/// Null for a name that is not in the table, as another version's results may have.
constexpr const FlagFacts* find_flag(std::string_view name) {
  const auto* const found = std::ranges::find(kFlags, name, &FlagFacts::name);
  return found == std::end(kFlags) ? nullptr : found;
}

/// What a flag says; empty for one that is not known. (A loop: UBSan's checks of pointers are no
/// constant expressions.)
constexpr std::string_view meaning_of_flag(std::string_view name) {
  for (const FlagFacts& facts : kFlags)
    if (facts.name == name) return facts.meaning;
  return {};
}

/// The name of a flag that the table has and explains; made of a literal, and checked by the
/// compiler.
class Flag {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): add_flag(flags, "noisy")
  consteval Flag(const char* name) : name_(name) {
    if (meaning_of_flag(name_).empty()) throw "the table has no such flag, or no meaning of it";
  }
  constexpr std::string_view name() const { return name_; }

 private:
  std::string_view name_;
};

/// Adds `flag` to `flags` unless it is there.
inline void add_flag(std::vector<std::string>& flags, Flag flag) {
  if (std::ranges::find(flags, flag.name()) == flags.end()) flags.emplace_back(flag.name());
}

}  // namespace kb
