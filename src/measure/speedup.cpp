#include "measure/speedup.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <numbers>
#include <random>

#include "flag/flag.h"

namespace kb::measure {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kDisturbed = 1.02;
// A time is never taken as less than this, so that a ratio stays finite where jitter exceeds the
// call.
constexpr double kFloorUs = 0.05;
constexpr double kShortCallUs = 1000, kLongCallUs = 200'000;
constexpr int kFewestPairs = 10;
constexpr int kPairs = 30, kPairsOfShortCalls = 45;
constexpr int kSingles = 12, kSinglesOfShortCalls = 24;
constexpr int kFewestTurns = 24;     // of each side: they are checks, too
constexpr double kCallsOfAPair = 3;  // two timed turns and the expected outputs

TurnPlan with_at_most(TurnPlan plan, double calls) {
  if (calls >= plan.max_calls) return plan;
  plan.max_calls = static_cast<int>(calls);
  plan.pairs = std::max(plan.pairs, plan.most_pairs);  // shorter turns tell less
  return plan;
}

// Where nothing is known of what turns vary by.
int singles_of(int pairs) {
  return std::max(pairs * 2 / 3, std::min(pairs, kSingles));
}

// After how many pairs the median of their ratios is known to kMedianKnownTo: its standard
// deviation is sqrt(pi / 2) of the mean's, and a ratio has the jitter of two turns.
double pairs_needed(double turn_us, double jitter_us) {
  const double ratio = std::numbers::sqrt2 * jitter_us / std::max(turn_us, kFloorUs);
  return std::numbers::pi / 2 * std::pow(ratio / kMedianKnownTo, 2);
}

double call_us(double wall_us, int calls, const Overhead& overhead) {
  return std::max((wall_us - overhead.at(calls)) / calls, kFloorUs);
}

struct Overheads {
  Overhead reference, candidate;
  bool capped = false;  // an overhead was larger than a whole turn
};

struct Sample {
  int calls = 1;  // of each of its turns
  std::vector<double> ratios, reference_us, candidate_us;
};

// Of pairs with one number of calls.
Sample sample_of(std::span<const Pair> pairs, const Overheads& overheads) {
  Sample sample;
  if (!pairs.empty()) sample.calls = pairs.front().calls;
  for (const auto& pair : pairs) {
    const double reference = call_us(pair.reference_wall_us, pair.calls, overheads.reference);
    const double candidate = call_us(pair.candidate_wall_us, pair.calls, overheads.candidate);
    sample.reference_us.push_back(reference);
    sample.candidate_us.push_back(candidate);
    sample.ratios.push_back(reference / candidate);
  }
  return sample;
}

std::vector<Pair> pairs_with(const SpeedupInput& input, int calls) {
  std::vector<Pair> pairs;
  std::ranges::copy_if(input.pairs, std::back_inserter(pairs),
                       [&](const Pair& pair) { return pair.calls == calls; });
  return pairs;
}

// No larger than the shortest wall that was seen at the number of calls it matters for.
Overhead capped(Overhead overhead, double shortest_us, int calls) {
  const double excess = overhead.at(calls) - shortest_us;
  if (excess > 0) overhead.fixed_us = std::max(overhead.fixed_us - excess, 0.0);
  return overhead;
}

// The shortest walls of each side at the largest number of calls.
struct Shortest {
  int calls = 1;
  double reference_us = 0, candidate_us = 0;
};

Shortest shortest_of(const SpeedupInput& input) {
  const int calls = std::ranges::max(input.pairs, {}, &Pair::calls).calls;
  const auto pairs = pairs_with(input, calls);
  return {calls, std::ranges::min(pairs, {}, &Pair::reference_wall_us).reference_wall_us,
          std::ranges::min(pairs, {}, &Pair::candidate_wall_us).candidate_wall_us};
}

Overheads overheads_of(const Shortest& shortest, std::span<const StubTurn> reference,
                       std::span<const StubTurn> candidate) {
  const Overhead of_reference = fit_overhead(reference), of_candidate = fit_overhead(candidate);
  return {capped(of_reference, shortest.reference_us, shortest.calls),
          capped(of_candidate, shortest.candidate_us, shortest.calls),
          of_reference.at(shortest.calls) > shortest.reference_us ||
              of_candidate.at(shortest.calls) > shortest.candidate_us};
}

template <class T>
std::vector<T> redraw(const std::vector<T>& from, std::mt19937_64& random) {
  std::vector<T> drawn;
  if (from.empty()) return drawn;
  std::uniform_int_distribution<std::size_t> pick(0, from.size() - 1);
  for (std::size_t i = 0; i < from.size(); ++i) drawn.push_back(from[pick(random)]);
  return drawn;
}

// How far apart the middle 80 % of the stub's turns are, of those with the number of calls that is
// nearest to `calls`; 0 without any.
double jitter_us(std::span<const StubTurn> turns, int calls) {
  if (turns.empty()) return 0;
  const int nearest = std::ranges::min(turns, {}, [&](const StubTurn& turn) {
                        return std::abs(turn.calls - calls);
                      }).calls;
  std::vector<double> walls;
  for (const auto& turn : turns)
    if (turn.calls == nearest) walls.push_back(turn.wall_us);
  return quantile(walls, 0.9) - quantile(walls, 0.1);
}

// The 95 % interval of the median ratio, over pairs and stub turns alike.
Interval ratio_ci95(const SpeedupInput& input, const std::vector<Pair>& pairs, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const Shortest shortest = shortest_of(input);
  const auto statistic = [&](std::span<const std::size_t> indices) {
    const auto reference = redraw(input.reference_stub, random);
    const auto candidate =
        input.candidate_stub.empty() ? reference : redraw(input.candidate_stub, random);
    std::vector<Pair> drawn;
    for (const std::size_t i : indices) drawn.push_back(pairs[i]);
    return median(sample_of(drawn, overheads_of(shortest, reference, candidate)).ratios);
  };
  return bootstrap_ci95(pairs.size(), statistic, seed + 1, 1000);
}

// An interval whose error is joined by that of the processes' luck; both are taken as lognormal.
Interval widened(const Interval& ci, double centre, const ProcessSpread& spread,
                 const Sample& sample) {
  const auto share_of_luck = [&](const std::vector<double>& call_us) {
    // Of a normal distribution 80 % lie within 2.563 standard deviations.
    const double jitter_us =
        (quantile(call_us, 0.9) - quantile(call_us, 0.1)) / 2.563 * sample.calls;
    const double luck_us =
        std::max(spread.turn_us, spread.jitter_share * (jitter_us - spread.usual_jitter_us));
    // More than the whole turn is as good as nothing known.
    return std::min(luck_us / (median(call_us) * sample.calls), 1.0);
  };
  const double luck = 1.96 * std::hypot(spread.log_speedup, share_of_luck(sample.reference_us),
                                        share_of_luck(sample.candidate_us));
  return {centre * std::exp(-std::hypot(std::log(centre / ci.low), luck)),
          centre * std::exp(std::hypot(std::log(ci.high / centre), luck))};
}

// The share of the candidate's speedup that is left when its turns were longer by what it could
// have forged.
double believed(const Sample& sample, double forgeable_us) {
  const double turn_us = median(sample.candidate_us) * sample.calls;
  return turn_us / (turn_us + forgeable_us);
}

// By how much a candidate's first call is dearer than a later one, beyond the reference's, in
// microseconds: at least, with 95 % confidence. Both start cold; what only one of them has is the
// work of more than one call.
double first_call_surplus_us(const std::vector<Pair>& singles, const Overheads& overheads,
                             const Sample& at_max, double doubtful_us, std::uint64_t seed) {
  const double later_us = median(at_max.candidate_us) - median(at_max.reference_us) +
                          overheads.candidate.at(1) - overheads.reference.at(1);
  std::vector<double> surplus_us;
  for (const auto& pair : singles)
    surplus_us.push_back(pair.candidate_wall_us - pair.reference_wall_us - later_us);
  return median_ci95(surplus_us, seed).low - 1.96 * std::numbers::sqrt2 * doubtful_us;
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
  result.at_least = kNaN;
  if (input.pairs.empty()) return result;

  const int max_calls = std::ranges::max(input.pairs, {}, &Pair::calls).calls;
  const Overheads overheads =
      overheads_of(shortest_of(input), input.reference_stub,
                   input.candidate_stub.empty() ? input.reference_stub : input.candidate_stub);
  result.reference_overhead_us = overheads.reference.at(max_calls);
  result.candidate_overhead_us = overheads.candidate.at(max_calls);
  const auto pairs = pairs_with(input, max_calls);
  const Sample at_max = sample_of(pairs, overheads);
  Sample sample = at_max;
  double single_low = std::numeric_limits<double>::infinity();
  result.speedup = median(sample.ratios);
  result.ci95 = ratio_ci95(input, pairs, input.seed);

  if (const auto singles = pairs_with(input, 1); max_calls > 1 && !singles.empty()) {
    const Sample single = sample_of(singles, overheads);
    const Interval own = ratio_ci95(input, singles, input.seed + 2);
    const double centre = median(single.ratios);
    ProcessSpread doubtful = input.process_spread;
    doubtful.turn_us = std::max(doubtful.turn_us, doubtful.doubt_us);
    // Without its jitter, which a candidate could make: it sees how many calls a turn has.
    ProcessSpread steady = doubtful;
    steady.usual_jitter_us = std::numeric_limits<double>::infinity();
    const Interval known = widened(own, centre, steady, single);
    const Interval batch = widened(result.ci95, result.speedup, steady, at_max);
    single_low = widened(own, centre, doubtful, single).low * believed(single, input.forgeable_us);
    if (known.high < batch.low &&
        first_call_surplus_us(singles, overheads, at_max, steady.turn_us, input.seed + 3) > 0) {
      sample = single;
      result.speedup = centre;
      result.ci95 = own;
      add_flag(result.flags, "batch_dependent");
    }
  }
  result.pairs = static_cast<int>(sample.ratios.size());
  result.reference_us = median(sample.reference_us);
  result.candidate_us = median(sample.candidate_us);

  std::vector<double> solo;
  for (const auto& turn : input.solo)
    if (turn.calls == max_calls)
      solo.push_back(call_us(turn.wall_us, turn.calls, overheads.reference));
  if (!solo.empty()) {
    result.solo_us = median(solo);
    // Compared at the K of the solo turns, also where the credit is K = 1's.
    const double paired = median(at_max.reference_us);
    if (paired > kDisturbed * quantile(solo, 0.75)) {
      const double scale = result.solo_us / paired;
      single_low *= scale;
      result.speedup *= scale;
      result.ci95.low *= scale;
      result.ci95.high *= scale;
      result.reference_us = std::min(result.reference_us, result.solo_us);
      add_flag(result.flags, "baseline_disturbed");
    }
  }
  if (result.ci95.high - result.ci95.low > 2 * kNoisyHalfWidth * result.speedup)
    add_flag(result.flags, "noisy");
  result.ci95 = widened(result.ci95, result.speedup, input.process_spread, sample);
  result.at_least = std::min(result.ci95.low * believed(sample, input.forgeable_us), single_low);
  const auto share = [&](std::span<const StubTurn> stub, double call_time_us) {
    return jitter_us(stub, max_calls) / (call_time_us * max_calls);
  };
  const auto& candidate_stub =
      input.candidate_stub.empty() ? input.reference_stub : input.candidate_stub;
  if (overheads.capped || std::min(result.candidate_us, result.reference_us) < kResolutionUs ||
      share(candidate_stub, result.candidate_us) > kMaxJitterShare ||
      share(input.reference_stub, result.reference_us) > kMaxJitterShare ||
      input.forgeable_us > kMaxForgedShare * result.candidate_us * sample.calls)
    add_flag(result.flags, "below_resolution");
  return result;
}

TurnPlan plan_turns(double call_us, std::size_t slot_bytes, double pair_ms, double budget_ms,
                    int forced_pairs, const TurnLimits& limits) {
  const auto within = [&](double calls) {
    const double fit =
        static_cast<double>(limits.slot_bytes) / std::max(static_cast<double>(slot_bytes), 1.0);
    return static_cast<int>(
        std::max(std::min({calls, std::floor(fit), static_cast<double>(limits.calls)}), 1.0));
  };
  TurnPlan plan;
  plan.max_calls = within(std::ceil(limits.turn_us / std::max(call_us, 1.0)));
  plan.most_calls = std::max(plan.max_calls, within(kMostLengthened));
  const double cost_ms = pair_ms + kCallsOfAPair * call_us * plan.max_calls / 1000;
  const double affordable = budget_ms / std::max(cost_ms, 1e-3);
  if (forced_pairs > 0) {
    plan.pairs = plan.most_pairs = forced_pairs;
    plan.singles = singles_of(forced_pairs);
    return plan;
  }
  const bool short_call = call_us < kShortCallUs, steady = std::isfinite(limits.jitter_us);
  plan.singles = short_call ? kSinglesOfShortCalls : kSingles;
  // A slow call's wall is the call, a small one's is more of jitter.
  plan.most_pairs = call_us >= kLongCallUs ? kFewestPairs : kPairs;
  const double most = short_call ? kPairsOfShortCalls : plan.most_pairs;
  const double fewest =
      std::clamp(kFewestTurns - plan.single_pairs(), kFewestPairs, plan.most_pairs);
  const double needed =
      std::clamp(std::ceil(pairs_needed(call_us * plan.max_calls, limits.jitter_us)), fewest, most);
  plan.pairs = static_cast<int>(
      std::clamp(affordable, std::min(needed, static_cast<double>(plan.most_pairs)), needed));
  if (!steady) plan.singles = singles_of(plan.pairs);
  return plan;
}

TurnPlan within_slots(TurnPlan plan, int most) {
  plan.most_calls = std::min(plan.most_calls, most);
  return with_at_most(plan, most);
}

TurnPlan shortened(TurnPlan plan, double candidate_us, double most_us) {
  return with_at_most(plan, std::ceil(most_us / std::max(candidate_us, kFloorUs)));
}

TurnPlan lengthened(TurnPlan plan, double call_us, double candidate_us, double least_us,
                    double budget_ms) {
  const double call_ms = kCallsOfAPair * call_us / 1000;
  const double wanted = std::ceil(least_us / std::max(candidate_us, kFloorUs));
  const double payable = 2 * budget_ms / (kFewestPairs * call_ms);
  const double calls = std::min({wanted, payable, static_cast<double>(plan.most_calls)});
  int fewest = plan.pairs;
  if (calls >= plan.max_calls + 1) {
    plan.max_calls = static_cast<int>(calls);
    fewest = std::min(fewest, std::max(kFewestPairs, kFewestTurns - plan.single_pairs()));
  }
  const double needed =
      std::clamp<double>(std::ceil(pairs_needed(candidate_us * plan.max_calls, kGpuJitterUs)),
                         plan.pairs, std::max(plan.pairs, plan.most_pairs));
  const double affordable = budget_ms / (call_ms * plan.max_calls);
  plan.pairs = static_cast<int>(std::clamp<double>(affordable, fewest, needed));
  return plan;
}

}  // namespace kb::measure
