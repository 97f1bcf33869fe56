// From turns to a speedup with an interval.
//
// A turn of K calls has the wall time W = c0(K) + K * E: c0 is what the doorbell, the resumption
// and the stopping of a worker cost, measured with our own null stub and never with the candidate's
// code. So E = (W - c0(K)) / K is an upper bound of a call's time: a worker can lengthen it, not
// shorten it.
//
// A pair is a turn of the reference and a turn of the candidate on the same inputs, in random
// order, so that drift of the machine cancels in their ratio. speedup = median of the ratios of the
// pairs with the largest K, with a 95 % bootstrap interval.
//
// Superbatch. All K inputs of a turn are visible at `go`, so one launch could do the work of all K
// calls. Pairs with K = 1 are mixed in at random; where they show a speedup that is significantly
// lower than the others', and the candidate's first call costs more than the reference's beside a
// later one, both by more than two processes' turns differ anyway, theirs is credited (flag
// `batch_dependent`).
//
// What can be relied on, `at_least`, is what verified scores count: the interval's low end, less
// what a worker could have saved of each of its turns by saying `done` ahead of time; and no more
// than single calls show by the same rule, because a batch of short calls hides in their noise.
//
// Slowed reference. The reference is timed alone before the candidate exists, and where it looks
// slower beside the candidate, again after the candidate's death (a machine's own speed drifts).
// Where the median of its paired turns is over 2 % above the upper quartile of its turns alone, the
// ratios are scaled down to the solo time (flag `baseline_disturbed`).
//
// Luck of a process. The same code in two processes differs by a little, however many pairs are
// taken: in proportion, by where its memory lies above all, and by some microseconds a turn, by how
// warm its CPU is when it is let go. On a GPU both turns of a pair run on one CPU, drawn anew for
// each pair, so that the CPU's part cancels, or shows as noise of the pairs. Where they cannot be
// bound to one, turns that vary by more than those of a GPU do are the CPU's work, and a CPU that
// is slower than another one stays so for seconds: what they vary by is luck, too. How much was
// measured by racing references against themselves; the interval is widened by it as by a second,
// independent error.
//
// c0 is an estimate too: the bootstrap draws the stub turns again in each replicate, so that its
// uncertainty is in the interval. It is never taken larger than the shortest wall of its side.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "measure/statistics.h"

namespace kb::measure {

/// c0 of a kind of worker: microseconds, linear in the number of calls.
struct Overhead {
  double fixed_us = 0;
  double per_call_us = 0;
  double at(int calls) const { return fixed_us + per_call_us * calls; }
};

/// One null-stub turn.
struct StubTurn {
  int calls = 1;
  double wall_us = 0;
};
/// Fits the lower quartile of the walls at the smallest and at the largest number of calls. Needs
/// one turn at least; a single number of calls gives per_call_us = 0. Neither term is negative.
Overhead fit_overhead(std::span<const StubTurn> turns);

struct Pair {
  int calls = 1;
  double reference_wall_us = 0;
  double candidate_wall_us = 0;
};

struct Solo {
  int calls = 1;
  double wall_us = 0;
};

/// How the same code differs from process to process, as standard deviations.
struct ProcessSpread {
  double log_speedup = 0;  ///< of the logarithm of its speedup over itself
  double turn_us = 0;      ///< of a turn's wall, whatever its length
  /// What is allowed for against a claim that single calls are to bear out, if it is more.
  double doubt_us = 0;
  /// Walls of one process with a larger standard deviation than this: that share of the excess, if
  /// it is more than turn_us, takes its place.
  double usual_jitter_us = std::numeric_limits<double>::infinity();
  double jitter_share = 1;
};
/// Of references against themselves, each in a process of its own (docs/performance.md).
inline constexpr ProcessSpread kCpuProcessSpread{.log_speedup = 0.02};
/// (Walls that vary from turn to turn by more than the GPU's do are of calls that wait for their
/// launches, as Python's of 10 µs; such a turn differs by a tenth of that from process to process.)
inline constexpr ProcessSpread kGpuProcessSpread{.log_speedup = 0.002,
                                                 .turn_us = 10,
                                                 .doubt_us = 15,
                                                 .usual_jitter_us = 100,
                                                 .jitter_share = 0.1};
/// The same where each side has had a CPU of its own.
inline constexpr ProcessSpread kUnboundGpuProcessSpread{
    .log_speedup = 0.002, .turn_us = 15, .usual_jitter_us = 100};

struct SpeedupInput {
  std::vector<Pair> pairs;
  std::vector<Solo> solo;  ///< turns of the reference before the candidate existed; may be empty
  std::vector<StubTurn> reference_stub;  ///< null-stub turns of the reference's kind of worker
  std::vector<StubTurn> candidate_stub;  ///< of the candidate's kind; empty: the same as the
                                         ///< reference's, drawn together
  std::uint64_t seed = 0;                ///< of the bootstrap
  ProcessSpread process_spread;
  /// What of c0 a worker can save that has its work queued and says `done` at once, a turn.
  double forgeable_us = 0;
};

/// The largest that an attack has shown, on an H200: its work waits in the GPU's queue for its own
/// forged `done`, so that neither the worker's waking nor a launch nor the judge's reaction is
/// waited for. The two switches of contexts, which are most of c0, cannot be saved.
inline constexpr double kGpuForgeableUs = 75;

struct Speedup {
  double speedup = 0;  ///< NaN without pairs
  Interval ci95;
  double at_least = 0;      ///< of the speedup, with doubts against the candidate; NaN as ci95
  double reference_us = 0;  ///< median time of one call
  double candidate_us = 0;
  double solo_us = 0;                ///< NaN without solo turns
  double reference_overhead_us = 0;  ///< c0 at the largest number of calls
  double candidate_overhead_us = 0;
  int pairs = 0;  ///< that the median was taken over
  std::vector<std::string>
      flags;  ///< of: noisy, batch_dependent, baseline_disturbed, below_resolution
};

/// Half-width of the pairs' own interval, relative to the estimate, above which a result is
/// `noisy`.
inline constexpr double kNoisyHalfWidth = 0.02;
/// A call that takes less than this, or a turn of calls that is not many times longer than what the
/// null stub's turns vary by, cannot be told from the doorbell's own jitter (flag
/// `below_resolution`).
inline constexpr double kResolutionUs = 1.0;
inline constexpr double kMaxJitterShare = 0.2;
/// Where forging could save more than this share of a candidate's turn, that counts as too short,
/// too.
inline constexpr double kMaxForgedShare = 0.2;
/// So a candidate's turn on a GPU should be this long, a third to spare.
inline constexpr double kLeastGpuTurnUs = 500;

Speedup estimate_speedup(const SpeedupInput& input);

/// How many calls the turns of a measurement have.
struct TurnPlan {
  int max_calls = 1;    ///< K of most pairs
  int most_calls = 1;   ///< what max_calls may be raised to: so many slots there are
  int pairs = 30;       ///< with max_calls
  int most_pairs = 30;  ///< what `lengthened` may raise pairs to
  int singles = 0;      ///< extra pairs with K = 1 where max_calls is more
  int single_pairs() const { return max_calls > 1 ? singles : 0; }
};
/// What turns aim at, and what bounds them.
struct TurnLimits {
  double turn_us = 0;          ///< aimed at
  int calls = 1;               ///< at most
  std::size_t slot_bytes = 0;  ///< of all slots, at most
  /// Standard deviation of a turn's wall, whatever its length. Unknown: no plan has fewer pairs for
  /// its turns being long.
  double jitter_us = std::numeric_limits<double>::infinity();
};
/// A CPU's doorbell jitters by some tens of microseconds a turn, and its calls in proportion.
inline constexpr TurnLimits kCpuTurns{.turn_us = 4000, .calls = 16, .slot_bytes = 256u << 20};
/// On a GPU walls of turns of 0.5 to 12 ms alike vary by 30 to 40 µs where a CPU can be kept awake,
/// by 80 to 170 where not (docs/performance.md). So one long turn is worth many short ones: what is
/// known of a call after n turns of K calls goes with K * sqrt(n), what they cost with K * n.
inline constexpr double kGpuJitterUs = 80;
inline constexpr TurnLimits gpu_turns(std::size_t slot_bytes) {
  return {.turn_us = 10'000, .calls = 256, .slot_bytes = slot_bytes, .jitter_us = kGpuJitterUs};
}
/// To how much of it the median of a plan's ratios should be known, as a standard deviation.
inline constexpr double kMedianKnownTo = 0.0035;
/// Of a candidate's turn: so slow a one needs no fine scale.
inline constexpr double kMostTurnUs = 30'000;
/// What turns of any candidate may come to, as far as slots allow.
inline constexpr int kMostLengthened = 16;
/// `call_us`: the reference's time of one call; `slot_bytes`: inputs and outputs of one call;
/// `pair_ms`: what one pair costs beside its calls. All are known before the first pair, and the
/// plan is not changed while looking at results. K: as many calls as make `limits.turn_us`, within
/// the other limits. Pairs: 30, by the budget up to 45 for calls under a millisecond, 10 from 200
/// ms up; fewer where kMedianKnownTo needs fewer, but 24 turns in all, because a turn is a check,
/// too.
TurnPlan plan_turns(double call_us, std::size_t slot_bytes, double pair_ms, double budget_ms,
                    int forced_pairs, const TurnLimits& limits);
/// The plan for a candidate that takes `candidate_us` a call and is much slower than the reference:
/// as many calls as make its turns take `most_us`, one at least. Fewer calls have more pairs, up to
/// most_pairs, here and in within_slots.
TurnPlan shortened(TurnPlan plan, double candidate_us, double most_us);
/// The plan with no more calls than `most`, nor slots.
TurnPlan within_slots(TurnPlan plan, int most);
/// The plan of a GPU's turns for a candidate that takes `candidate_us` a call: where its turns
/// would be shorter than `least_us`, the turns of both sides get more calls, as far as most_calls
/// goes and ten pairs fit twice the budget. Then as many pairs as its turns need, up to most_pairs,
/// and fewer where they do not fit the budget, ten at least. `call_us` as above.
TurnPlan lengthened(TurnPlan plan, double call_us, double candidate_us, double least_us,
                    double budget_ms);

}  // namespace kb::measure
