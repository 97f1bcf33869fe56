#include "cli/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "build/log.h"
#include "cli/progress.h"
#include "flag/flag.h"

namespace kb::cli {
namespace {

std::string time_text(double us) {
  if (us < 1000) return fmt::format("{:.1f} us", us);
  return us < 1e6 ? fmt::format("{:.3f} ms", us / 1000) : fmt::format("{:.3f} s", us / 1e6);
}

}  // namespace

std::string telling_line(const std::string& text) {
  const std::string line = printable(build::first_error(text), false);
  return line.size() > 160 ? line.substr(0, 157) + "..." : line;
}

std::string one_line(const judge::Result& result) {
  std::string text(name_of(result.verdict));
  if (result.speedup)
    text += fmt::format("  {:.2f}x [{:.2f}, {:.2f}]  {} against {}", *result.speedup,
                        result.speedup_ci95->low, result.speedup_ci95->high,
                        time_text(*result.time_us), time_text(*result.reference_time_us));
  if (!result.flags.empty()) text += fmt::format("  flags: {}", fmt::join(result.flags, ", "));
  if (!result.correct() && !result.message.empty()) text += "  " + telling_line(result.message);
  return text;
}

std::string in_full(const judge::Result& result, const judge::Options& options) {
  std::string text = fmt::format("{}  {}  ({}, {}, {}, size {})\n", result.problem,
                                 printable(result.candidate, false), result.backend, options.device,
                                 options.precision, options.size);
  text += fmt::format("verdict    {}\n", name_of(result.verdict));
  if (!result.message.empty())
    text += fmt::format("           {}\n", printable(result.message.substr(0, 6000), true));
  if (result.public_correct && *result.public_correct != result.correct())
    text += fmt::format("           by KernelBench's rule alone: {}\n",
                        *result.public_correct ? "correct" : "incorrect");
  if (options.timer != judge::Timer::sealed && result.time_us)
    text +=
        fmt::format("timer      {}: times are self-reported by the workers, and never verified\n",
                    name_of(options.timer));
  if (result.speedup) {
    const std::string taken =
        options.timer == judge::Timer::sealed
            ? fmt::format("{} pairs of {} call{}", result.pairs, result.calls_per_turn,
                          result.calls_per_turn == 1 ? "" : "s")
            : fmt::format("{} rounds", result.pairs);
    text +=
        fmt::format("speedup    {:.3f}x  (95 % interval {:.3f} to {:.3f}, {})\n", *result.speedup,
                    result.speedup_ci95->low, result.speedup_ci95->high, taken);
    if (result.speedup_at_least)
      text += fmt::format("           verified scores rely on {:.3f}x\n", *result.speedup_at_least);
    text += fmt::format("time       {}  against PyTorch's {}\n", time_text(*result.time_us),
                        time_text(*result.reference_time_us));
  }
  if (result.max_abs_error)
    text += fmt::format("error      max abs {:.3g}, max rel {:.3g}  (tolerance {:.3g}{})\n",
                        *result.max_abs_error, result.max_rel_error.value_or(NAN),
                        result.tolerance.atol,
                        result.tolerance.widened > 1
                            ? fmt::format(", widened {:g} times: the reference's own error",
                                          result.tolerance.widened)
                            : "");
  if (result.norm_error_vs_truth)
    text += fmt::format("           {:.2g} from float64 in norm; the reference {:.2g}\n",
                        *result.norm_error_vs_truth, *result.reference_norm_error_vs_truth);
  for (const auto& flag : result.flags) {
    const std::string_view meaning = meaning_of_flag(flag);
    text += fmt::format("flag       {}{}{}\n", flag, meaning.empty() ? "" : ": ", meaning);
  }
  std::string phases;
  for (const auto& [name, ms] : result.phases_ms)
    phases += fmt::format("{}{} {:.0f}", phases.empty() ? "" : ", ", name, ms);
  return text + fmt::format("phases     {} ms\n", phases);
}

}  // namespace kb::cli
