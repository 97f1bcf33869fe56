#include "measure/speedup.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kb::measure {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kDisturbed = 1.02;
// A time is never taken as less than this, so that a ratio stays finite where jitter exceeds the
// call.
constexpr double kFloorUs = 0.05;

double call_us(double wall_us, int calls, const Overhead& overhead) {
  return std::max((wall_us - overhead.at(calls)) / calls, kFloorUs);
}

struct Sample {
  std::vector<double> ratios, reference_us, candidate_us;
};

Sample sample_of(const SpeedupInput& input, int calls) {
  Sample sample;
  for (const auto& pair : input.pairs) {
    if (pair.calls != calls) continue;
    const double reference = call_us(pair.reference_wall_us, calls, input.reference_overhead);
    const double candidate = call_us(pair.candidate_wall_us, calls, input.candidate_overhead);
    sample.reference_us.push_back(reference);
    sample.candidate_us.push_back(candidate);
    sample.ratios.push_back(reference / candidate);
  }
  return sample;
}

}  // namespace

Overhead fit_overhead(std::span<const StubTurn> turns) {
  if (turns.empty()) return {};
  const auto [low, high] = std::ranges::minmax(turns, {}, &StubTurn::calls);
  const auto quartile_at = [&](int calls) {
    std::vector<double> walls;
    for (const auto& turn : turns)
      if (turn.calls == calls) walls.push_back(turn.wall_us);
    return quantile(walls, 0.25);
  };
  const double at_low = quartile_at(low.calls);
  if (low.calls == high.calls) return {at_low, 0};
  const double slope = std::max((quartile_at(high.calls) - at_low) / (high.calls - low.calls), 0.0);
  return {std::max(at_low - slope * low.calls, 0.0), slope};
}

Speedup estimate_speedup(const SpeedupInput& input) {
  Speedup result;
  result.speedup = result.solo_us = kNaN;
  result.ci95 = {kNaN, kNaN};
  if (input.pairs.empty()) return result;

  const int max_calls = std::ranges::max(input.pairs, {}, &Pair::calls).calls;
  Sample sample = sample_of(input, max_calls);
  result.speedup = median(sample.ratios);
  result.ci95 = median_ci95(sample.ratios, input.seed);

  if (max_calls > 1) {
    const Sample single = sample_of(input, 1);
    if (!single.ratios.empty()) {
      const Interval ci = median_ci95(single.ratios, input.seed + 1);
      if (ci.high < result.ci95.low) {
        sample = single;
        result.speedup = median(single.ratios);
        result.ci95 = ci;
        result.flags.emplace_back("batch_dependent");
      }
    }
  }
  result.pairs = static_cast<int>(sample.ratios.size());
  result.reference_us = median(sample.reference_us);
  result.candidate_us = median(sample.candidate_us);

  std::vector<double> solo;
  for (const auto& turn : input.solo)
    if (turn.calls == max_calls)
      solo.push_back(call_us(turn.wall_us, turn.calls, input.reference_overhead));
  if (!solo.empty()) {
    result.solo_us = median(solo);
    // Compared at the K of the solo turns, also where the credit is K = 1's. Quantiles and not
    // medians: a machine's speed drifts, and then the two samples overlap; a reference that is held
    // back is slow in every pair.
    const Sample at_max = sample_of(input, max_calls);
    const double paired = median(at_max.reference_us);
    if (quantile(at_max.reference_us, 0.1) > kDisturbed * quantile(solo, 0.9)) {
      const double scale = result.solo_us / paired;
      result.speedup *= scale;
      result.ci95.low *= scale;
      result.ci95.high *= scale;
      result.reference_us = std::min(result.reference_us, result.solo_us);
      result.flags.emplace_back("baseline_disturbed");
    }
  }
  if (result.ci95.high - result.ci95.low > 2 * kNoisyHalfWidth * result.speedup)
    result.flags.emplace_back("noisy");
  if (std::min(result.candidate_us, result.reference_us) < kResolutionUs)
    result.flags.emplace_back("below_resolution");
  return result;
}

TurnPlan plan_turns(double call_us, std::size_t slot_bytes, double pair_ms, double budget_ms,
                    int forced_pairs) {
  constexpr double kTargetUs = 4000;
  constexpr std::size_t kMaxSlotBytes = 256u << 20;
  TurnPlan plan;
  if (call_us < kTargetUs)
    plan.max_calls =
        std::clamp(static_cast<int>(std::ceil(kTargetUs / std::max(call_us, 1.0))), 1, 16);
  const std::size_t fit = slot_bytes == 0 ? 16 : kMaxSlotBytes / slot_bytes;
  plan.max_calls =
      std::clamp(plan.max_calls, 1, std::max(static_cast<int>(std::min<std::size_t>(fit, 16)), 1));
  // Two timed turns and the expected outputs.
  const double cost_ms = pair_ms + 3 * call_us * plan.max_calls / 1000;
  const double affordable = budget_ms / std::max(cost_ms, 1e-3);
  // A slow call's wall is the call, a small one's is mostly jitter: the former needs few pairs, the
  // latter many.
  const int least = call_us >= 200'000 ? 10 : 30, most = call_us >= 1000 ? 30 : 60;
  plan.pairs =
      forced_pairs > 0 ? forced_pairs : std::clamp(static_cast<int>(affordable), least, most);
  if (plan.max_calls > 1) plan.single_pairs = std::max(plan.pairs / 5, 8);
  return plan;
}

}  // namespace kb::measure
