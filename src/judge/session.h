// One evaluation's trials and turns, from the loaded candidate to the estimate.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <span>
#include <vector>

#include "judge/contestant.h"
#include "judge/device.h"
#include "judge/options.h"
#include "judge/reference.h"
#include "judge/result.h"
#include "measure/speedup.h"

namespace kb::judge {

class Session {
 public:
  Session(Reference& reference, Contestant& contestant, const Options& options, Device& device,
          Result& result)
      : reference_(reference),
        contestant_(contestant),
        options_(options),
        device_(device),
        result_(result),
        deadline_(Clock::now() + options.limits.evaluation) {}

  /// Each writes what it finds into the result, and returns why the evaluation ends, if it does.
  std::expected<void, Failure> correctness();
  std::expected<void, Failure> stress();
  /// `candidate_stub`: null-stub turns of the candidate's kind of worker; empty: the reference's.
  std::expected<void, Failure> timing(const std::vector<measure::StubTurn>& candidate_stub);
  /// In the place of timing(): both workers time themselves (options.timer), in alternate rounds,
  /// on inputs drawn once; nothing is checked. The speedup is the median of the rounds' ratios of
  /// medians, its interval the bootstrap's over those ratios (five of them: about the smallest to
  /// the largest); times are medians of all samples. Always flagged `self_reported`.
  std::expected<void, Failure> self_reported();

 private:
  using Clock = std::chrono::steady_clock;

  std::expected<void, Failure> our(std::expected<void, worker::Fault> outcome);
  std::expected<void, Failure> in_time();
  // A turn was armed, and something that is not ours has run on the device `times` times.
  std::expected<void, Failure> disturbed(int times);
  // The same, when it is there to stay: whose is it?
  std::expected<void, Failure> blame();
  // Runs one call of the candidate, and checks it.
  std::expected<Check, Failure> candidate_call(const worker::Call& call,
                                               std::span<const Tolerance> tolerances);
  // Transforms the inputs that were drawn into the call's slot, each tensor under a seed of its
  // own.
  void transform(Stress kind, std::uint64_t seed, const worker::Call& call);
  std::expected<bool, Failure> stressed(Stress kind, std::uint64_t seed, const worker::Call& call,
                                        std::vector<Tolerance>& tolerance);
  std::expected<void, Failure> draw_many(std::span<const worker::Call> calls);
  // What warming up has shown of the candidate.
  struct Warm {
    bool may_batch = true;      // false: its turns must have one call
    double shortest_us = 1e30;  // of its turns' walls
  };
  // Warms both sides up with the plan's turns.
  std::expected<Warm, Failure> warm_up(const measure::TurnPlan& plan);
  std::expected<measure::Pair, Failure> pair(std::span<const worker::Call> calls,
                                             bool candidate_first, std::string_view place);
  std::expected<void, Failure> conclude(measure::SpeedupInput input, int calls);

  Reference& reference_;
  Contestant& contestant_;
  const Options& options_;
  Device& device_;
  Result& result_;
  Clock::time_point deadline_;
  int disturbances_ = 0;
  bool first_call_ = true;
  double trial_us_ = 0;     // the wall of the last untimed call but the first; 0: none
  bool may_plant_ = false;  // the planted transform was tried on this problem, and counts
};

}  // namespace kb::judge
