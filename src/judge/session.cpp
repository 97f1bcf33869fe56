#include "judge/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <thread>

#include "flag/flag.h"
#include "judge/elapsed.h"

namespace kb::judge {

using worker::Call;
using worker::Fault;
using worker::FaultKind;

namespace {

constexpr double kWarmUpMs = 100;
constexpr double kMostRoughTurnUs = 1e6;  // of a candidate's turn, by the wall of an untimed call
constexpr int kLengthenings = 3;          // of turns, until they are long enough
constexpr int kTruthTrials = 2;  // plain trials that are also compared with the float64 truth
constexpr double kReducedPrecisionRatio = 10;
constexpr double kReducedPrecisionFloor = 1e-5;
// Of workers that time themselves: 100 samples a side, as KernelBench takes, unless calls are long.
constexpr int kRounds = 5;
constexpr int kRoundWarmup = 3, kRoundReps = 20, kFewestRoundReps = 3;
constexpr int kDoBenchCalls = 10;  // what it makes at least, and a few
// A hiccup of the machine now and then is nobody's fault.
constexpr int kMostDisturbances = 3;
constexpr int kQuietWatches = 5;
constexpr int kTelemetryPairs = 10;  // pairs from one reading of clocks and power to the next

std::vector<Tolerance> as_comparison(std::span<const Tolerances> tolerances) {
  std::vector<Tolerance> list;
  for (const auto& one : tolerances) list.push_back({one.atol, one.rtol, one.norm_rtol});
  return list;
}

}  // namespace

std::expected<void, Failure> Session::our(std::expected<void, Fault> outcome) {
  if (outcome) return {};
  return std::unexpected(Failure{Verdict::infrastructure_error,
                                 "the reference worker failed: " + outcome.error().text, true});
}

std::expected<void, Failure> Session::in_time() {
  if (Clock::now() < deadline_) return {};
  return std::unexpected(
      Failure{Verdict::timeout, fmt::format("the evaluation took more than {} s",
                                            options_.limits.evaluation.count() / 1000)});
}

std::expected<void, Failure> Session::disturbed(int times) {
  if (times == 0) return {};
  if (auto done = device_.synchronize(); !done)
    return std::unexpected(Failure{Verdict::infrastructure_error, done.error(), true});
  // Somebody else's display, say, was there before the candidate.
  if (reference_.disturbances() > 0) {
    add_flag(result_.flags, "gpu_not_idle");
    return {};
  }
  disturbances_ += times;
  return disturbances_ <= kMostDisturbances ? std::expected<void, Failure>() : blame();
}

std::expected<void, Failure> Session::blame() {
  // The candidate's work goes with the candidate.
  contestant_.worker().process().kill();
  std::this_thread::sleep_for(milliseconds(200));
  for (int i = 0; i < kQuietWatches; ++i) {
    device_.begin_watch();
    if (!device_.end_watch())
      return std::unexpected(Failure{Verdict::infrastructure_error,
                                     "something that is not kernelbench's runs on the device"});
  }
  auto text = std::string("work of the candidate ran on the device outside its turns");
  if (disturbances_ > 0) text += fmt::format(", {} times", disturbances_);
  return std::unexpected(Failure{Verdict::tampering, std::move(text)});
}

std::expected<Check, Failure> Session::candidate_call(const Call& call,
                                                      std::span<const Tolerance> tolerances) {
  if (auto prepared = contestant_.prepare_turn(false, std::nullopt); !prepared)
    return std::unexpected(prepared.error());
  contestant_.arm_untimed(std::span(&call, 1));
  if (!device_.idle()) {
    std::this_thread::sleep_for(milliseconds(20));
    if (!device_.idle())
      if (auto done = blame(); !done) return std::unexpected(done.error());
  }
  auto turn =
      contestant_.turn(first_call_ ? options_.limits.first_call : options_.limits.call, tolerances);
  if (!turn) return std::unexpected(turn.error());
  if (first_call_) result_.phases_ms["first_call"] = turn->wall_us / 1000;
  if (!first_call_) trial_us_ = turn->wall_us;  // the first may compile
  auto checks = contestant_.checks();
  if (!checks) return std::unexpected(checks.error());
  if (first_call_) {
    if (auto locked = contestant_.lock(); !locked) return std::unexpected(locked.error());
    first_call_ = false;
  }
  return checks->front();
}

void Session::transform(Stress kind, std::uint64_t seed, const Call& call) {
  std::size_t t = 0;
  for (const auto& input : reference_.spec().inputs)
    if (input.tensor) {
      device_.apply_stress(kind, reference_.master(call.slot, t), input.tensor->dtype, seed + t);
      ++t;
    }
}

std::expected<void, Failure> Session::draw_many(std::span<const Call> calls) {
  std::vector<std::uint64_t> seeds(calls.size());
  std::ranges::generate(seeds, secret_seed);
  if (auto drawn = our(reference_.draw(calls, seeds)); !drawn) return drawn;
  // In about half of the timed calls a few signs are flipped, at secret places: what is right for
  // the problem's distribution alone is not right for these, and they cost the same.
  if (may_plant_)
    for (std::size_t c = 0; c < calls.size(); ++c) {
      if ((seeds[c] & 1) != 0) continue;
      transform(Stress::planted, secret_seed(), calls[c]);
    }
  return our(reference_.expect(calls));
}

std::expected<void, Failure> Session::correctness() {
  const auto tolerance = as_comparison(reference_.tolerances());
  const bool public_rule = options_.rules == Rules::kernelbench;
  double worst_norm_error = 0;
  bool compared_with_truth = false;
  std::optional<Failure> failure;
  result_.public_correct = true;
  for (int t = 0; t < options_.correctness_trials; ++t) {
    if (auto on_time = in_time(); !on_time) return on_time;
    // 63 bits, as JSON readers and torch agree on.
    const std::uint64_t seed = secret_seed() >> 1;
    if (t == 0) result_.seed = seed;
    const Call call{0, secret_seed() >> 1};
    if (auto drawn = our(reference_.draw(std::span(&call, 1), std::span(&seed, 1))); !drawn)
      return drawn;
    if (auto computed = our(reference_.expect(std::span(&call, 1))); !computed) return computed;
    bool truth = false;
    if (t < kTruthTrials) {
      auto known = reference_.truth(call);
      if (!known) return our(std::unexpected(known.error()));
      truth = *known;
    }
    auto check = candidate_call(call, tolerance);
    if (!check) {
      result_.public_correct = false;
      return std::unexpected(check.error());
    }
    result_.trials.push_back({"random", seed, true, !check->failure, check->max_abs_error});
    result_.max_abs_error = std::max(result_.max_abs_error.value_or(0), check->max_abs_error);
    result_.max_rel_error = std::max(result_.max_rel_error.value_or(0), check->max_rel_error);
    if (check->input_mutated) add_flag(result_.flags, "input_mutated");
    if (!check->within_public) result_.public_correct = false;
    if (check->failure && !failure) failure = check->failure;
    if (truth && !check->failure) {
      const auto mine = contestant_.check_against_truth();
      if (!mine) return std::unexpected(mine.error());
      if (mine->reference_norm > 0) {
        worst_norm_error = std::max(worst_norm_error, mine->error_norm / mine->reference_norm);
        compared_with_truth = true;
      }
    }
  }
  if (compared_with_truth) {
    result_.norm_error_vs_truth = worst_norm_error;
    result_.reference_norm_error_vs_truth = reference_.strict_error();
    if (options_.precision == "fp32" && worst_norm_error > kReducedPrecisionFloor &&
        worst_norm_error > kReducedPrecisionRatio * reference_.strict_error())
      add_flag(result_.flags, "reduced_precision");
  }
  if (public_rule && failure && *result_.public_correct) failure.reset();
  if (failure) return std::unexpected(*failure);
  return {};
}

std::expected<bool, Failure> Session::stressed(Stress kind, std::uint64_t seed, const Call& call,
                                               std::vector<Tolerance>& tolerance) {
  const auto& spec = reference_.spec();
  transform(kind, seed, call);
  if (auto computed = reference_.expect(std::span(&call, 1)); !computed) {
    // It refuses such inputs (a logarithm's domain, say): that is no fault of anybody's.
    const auto fault = computed.error().kind;
    if (fault == FaultKind::problem || fault == FaultKind::runtime ||
        fault == FaultKind::unsupported)
      return false;
    return std::unexpected(our(std::unexpected(computed.error())).error());
  }
  auto known = reference_.truth(call);
  if (!known) return std::unexpected(our(std::unexpected(known.error())).error());
  if (!*known) return false;
  tolerance = as_comparison(reference_.tolerances());
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    if (!is_floating(spec.outputs[i].dtype)) continue;
    const auto found = reference_.error_of(i, tolerance[i]);
    if (!found) return std::unexpected(our(std::unexpected(found.error())).error());
    const Comparison& own = *found;
    if (own.nonfinite_mismatches > 0 || !std::isfinite(own.reference_norm) ||
        own.relative_norm_error() > tolerance[i].norm_rtol)
      return false;
    // Outputs of such inputs can be large by themselves and small by cancellation, where a
    // different order of summation is as good as the reference's: the absolute tolerance follows
    // the output's root mean square, and the reference's own error.
    const double rms =
        own.elements > 0 ? own.reference_norm / std::sqrt(static_cast<double>(own.elements)) : 0;
    tolerance[i].atol =
        std::max({tolerance[i].atol, tolerance[i].rtol * rms, 4 * own.max_abs_error});
  }
  return true;
}

std::expected<void, Failure> Session::stress() {
  for (const auto kind : kAllStress) {
    if (auto on_time = in_time(); !on_time) return on_time;
    const std::uint64_t seed = secret_seed() >> 1;
    const Call call{0, secret_seed() >> 1};
    if (auto drawn = our(reference_.draw(std::span(&call, 1), std::span(&seed, 1))); !drawn)
      return drawn;
    std::vector<Tolerance> tolerance;
    const auto counts = stressed(kind, seed, call, tolerance);
    if (!counts) return std::unexpected(counts.error());
    if (!*counts) {
      result_.trials.push_back({std::string(name_of(kind)), seed, false, false, 0});
      continue;
    }
    auto check = candidate_call(call, tolerance);
    if (!check) return std::unexpected(check.error());
    result_.trials.push_back(
        {std::string(name_of(kind)), seed, true, !check->failure, check->max_abs_error});
    if (check->failure) {
      check->failure->message =
          fmt::format("on inputs transformed by {}: {}", name_of(kind), check->failure->message);
      return std::unexpected(*check->failure);
    }
    if (kind == Stress::planted) may_plant_ = true;
  }
  return {};
}

// Warm up by time, touching every slot: first calls fault pages in, start threads and fill code
// caches.
std::expected<Session::Warm, Failure> Session::warm_up(const measure::TurnPlan& plan) {
  const auto tolerance = as_comparison(reference_.tolerances());
  const auto slots = static_cast<unsigned>(plan.max_calls);
  Warm warm;
  const auto start = Clock::now();
  for (int round = 0; round < 2 || (ms_since(start) < kWarmUpMs && round < 20); ++round) {
    if (auto on_time = in_time(); !on_time) return std::unexpected(on_time.error());
    const auto calls = random_calls(plan.max_calls, slots);
    if (round == 0)
      if (auto drawn = draw_many(calls); !drawn) return std::unexpected(drawn.error());
    // What a turn of many calls starts, threads say, is not to be bound for ever.
    const auto cpu = round > 0 ? reference_.draw_cpu() : std::nullopt;
    if (auto prepared = our(reference_.prepare_turn(cpu)); !prepared)
      return std::unexpected(prepared.error());
    reference_.arm_turn(calls);
    if (auto timed = reference_.turn(); !timed)
      return std::unexpected(our(std::unexpected(timed.error())).error());
    if (auto prepared = contestant_.prepare_turn(true, cpu); !prepared)
      return std::unexpected(prepared.error());
    if (auto calm = disturbed(contestant_.arm_turn(calls)); !calm)
      return std::unexpected(calm.error());
    auto timed = contestant_.turn(options_.limits.call, tolerance);
    if (!timed) return std::unexpected(timed.error());
    warm.shortest_us = std::min(warm.shortest_us, timed->wall_us);
    if (auto checks = contestant_.checks(); !checks) return std::unexpected(checks.error());
    if (contestant_.outputs_overlap()) warm.may_batch = false;
  }
  return warm;
}

std::expected<measure::Pair, Failure> Session::pair(std::span<const Call> calls,
                                                    bool candidate_first, std::string_view place) {
  const auto tolerance = as_comparison(reference_.tolerances());
  if (auto drawn = draw_many(calls); !drawn) return std::unexpected(drawn.error());
  reference_.pause();
  measure::Pair pair{static_cast<int>(calls.size()), 0, 0};
  const auto cpu = reference_.draw_cpu();
  for (const bool candidate_turn : {candidate_first, !candidate_first}) {
    // Each side right before its own turn: who is prepared last would be the warmer one.
    auto prepared =
        candidate_turn ? contestant_.prepare_turn(true, cpu) : our(reference_.prepare_turn(cpu));
    if (!prepared) return std::unexpected(prepared.error());
    const int times = candidate_turn ? contestant_.arm_turn(calls) : reference_.arm_turn(calls);
    if (auto calm = disturbed(times); !calm) return std::unexpected(calm.error());
    if (!candidate_turn) {
      auto timed = reference_.turn();
      if (!timed) return std::unexpected(our(std::unexpected(timed.error())).error());
      pair.reference_wall_us = timed->wall_us;
      continue;
    }
    auto timed = contestant_.turn(options_.limits.call, tolerance);
    if (!timed) return std::unexpected(timed.error());
    pair.candidate_wall_us = timed->wall_us;
    auto checks = contestant_.checks();
    if (!checks) return std::unexpected(checks.error());
    for (auto& check : *checks) {
      if (check.input_mutated) add_flag(result_.flags, "input_mutated");
      if (check.failure && !(options_.rules == Rules::kernelbench && check.within_public)) {
        check.failure->message = fmt::format("in timed turn {}: {}", place, check.failure->message);
        return std::unexpected(*check.failure);
      }
    }
  }
  if (contestant_.worker().process().pids().size() > 1)
    return std::unexpected(
        Failure{Verdict::tampering, "it started another process after its first call"});
  return pair;
}

std::expected<void, Failure> Session::timing(const std::vector<measure::StubTurn>& candidate_stub) {
  const measure::TurnPlan planned = reference_.plan();
  measure::TurnPlan plan = planned;
  // A very slow candidate is known before it has made a turn of many calls.
  if (options_.calls == 0) plan = measure::shortened(plan, trial_us_, kMostRoughTurnUs);
  auto warm = warm_up(plan);
  if (!warm) return std::unexpected(warm.error());
  const auto& stub = candidate_stub.empty() ? reference_.stub_turns() : candidate_stub;
  const auto call_us = [&] {
    return (warm->shortest_us - measure::fit_overhead(stub).at(plan.max_calls)) / plan.max_calls;
  };
  if (options_.calls == 0) {
    const auto fitting = measure::shortened(planned, call_us(), measure::kMostTurnUs);
    const bool slow_in_trial_only = fitting.max_calls > plan.max_calls;
    plan = fitting;
    if (slow_in_trial_only) warm = warm_up(plan);
    if (!warm) return std::unexpected(warm.error());
  }
  const bool was_slow = plan.max_calls < planned.max_calls;
  // A much faster candidate than the reference has short turns: they get more calls. Not always
  // enough at once: the first call of a turn is longer than the others.
  for (int i = 0; i < kLengthenings && warm->may_batch; ++i) {
    const int calls = plan.max_calls;
    plan = measure::lengthened(plan, reference_.call_us(), call_us(), measure::kLeastGpuTurnUs,
                               options_.timing_budget_ms);
    if (options_.pairs > 0) plan.pairs = options_.pairs;
    if (plan.max_calls == calls) break;
    warm = warm_up(plan);
    if (!warm) return std::unexpected(warm.error());
  }
  const auto slots = static_cast<unsigned>(plan.max_calls);
  if (!warm->may_batch) plan = measure::within_slots(plan, 1);

  measure::SpeedupInput input;
  input.reference_stub = reference_.stub_turns();
  input.candidate_stub = candidate_stub;
  input.seed = secret_seed();
  const bool gpu = device_.ends_turns();
  input.forgeable_us = gpu ? measure::kGpuForgeableUs : 0;

  // The order of everything is drawn before the first pair: sizes shuffled, and who goes first
  // balanced over each two pairs.
  std::mt19937_64 random(secret_seed());
  std::vector<int> sizes(static_cast<std::size_t>(plan.pairs), plan.max_calls);
  sizes.insert(sizes.end(), static_cast<std::size_t>(plan.single_pairs()), 1);
  std::ranges::shuffle(sizes, random);
  std::vector<bool> candidate_first(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); i += 2) {
    candidate_first[i] = (random() & 1) != 0;
    if (i + 1 < sizes.size()) candidate_first[i + 1] = !candidate_first[i];
  }

  for (std::size_t p = 0; p < sizes.size(); ++p) {
    if (auto on_time = in_time(); !on_time) return on_time;
    if (p % kTelemetryPairs == 0)
      if (auto reading = device_.telemetry(); !reading.is_null())
        result_.telemetry.push_back(std::move(reading));
    const auto taken = pair(random_calls(sizes[p], slots), candidate_first[p],
                            fmt::format("{} of {}", p + 1, sizes.size()));
    if (!taken) return std::unexpected(taken.error());
    input.pairs.push_back(*taken);
  }
  const bool one_cpu = reference_.stays_bound() && contestant_.worker().stays_bound();
  input.process_spread = !gpu      ? measure::kCpuProcessSpread
                         : one_cpu ? measure::kGpuProcessSpread
                                   : measure::kUnboundGpuProcessSpread;
  const auto intact = contestant_.params_intact();
  if (!intact) return std::unexpected(intact.error());
  if (!*intact) add_flag(result_.flags, "input_mutated");
  if (auto done = conclude(std::move(input), plan.max_calls); !done) return done;
  // It was slow until its turns were planned: so it has chosen how short they are.
  if (was_slow && *result_.time_us * planned.max_calls < measure::kMostTurnUs / 3)
    add_flag(result_.flags, "below_resolution");
  return {};
}

std::expected<void, Failure> Session::self_reported() {
  add_flag(result_.flags, "self_reported");
  const int slots = reference_.plan().max_calls;
  const auto calls = random_calls(slots, static_cast<unsigned>(slots));
  std::vector<std::uint64_t> seeds(calls.size());
  std::ranges::generate(seeds, secret_seed);
  if (auto drawn = our(reference_.draw(calls, seeds)); !drawn) return drawn;
  contestant_.fill(calls);
  if (auto done = device_.synchronize(); !done)
    return std::unexpected(Failure{Verdict::infrastructure_error, done.error(), true});

  const double affordable = options_.timing_budget_ms * 1000 / (2 * kRounds * reference_.call_us());
  worker::TimeRequest request{
      .mode = std::string(name_of(options_.timer)),
      .slots = {},
      .warmup = kRoundWarmup,
      .reps = static_cast<int>(std::clamp<double>(affordable, kFewestRoundReps, kRoundReps))};
  for (const Call& call : calls) request.slots.push_back(call.slot);
  const int calls_made =
      options_.timer == Timer::do_bench ? kDoBenchCalls : request.warmup + request.reps;
  std::vector<double> reference_us, candidate_us, ratios;
  bool take_time = true;
  for (int round = 0; round < kRounds; ++round) {
    if (auto on_time = in_time(); !on_time) return on_time;
    const auto theirs = reference_.time(calls, request);
    if (!theirs) return our(std::unexpected(theirs.error()));
    const auto left = std::chrono::ceil<milliseconds>(deadline_ - Clock::now());
    const auto mine = contestant_.time(
        request, std::clamp(left, milliseconds(1'000),
                            std::max(options_.limits.call * calls_made, milliseconds(1'000))));
    if (!mine) return std::unexpected(mine.error());
    reference_us.insert(reference_us.end(), theirs->begin(), theirs->end());
    candidate_us.insert(candidate_us.end(), mine->begin(), mine->end());
    const double reference_median = measure::median(*theirs), own_median = measure::median(*mine);
    take_time = take_time && reference_median > 0 && own_median > 0;
    ratios.push_back(reference_median / own_median);
  }
  result_.time_us = measure::median(candidate_us);
  result_.reference_time_us = measure::median(reference_us);
  result_.pairs = kRounds;
  result_.calls_per_turn = 1;
  // A worker may say that its calls take no time at all: then there is no ratio to speak of.
  if (!take_time || !std::ranges::all_of(ratios, [](double r) { return std::isfinite(r); }))
    return {};
  result_.speedup = measure::median(ratios);
  result_.speedup_ci95 = measure::median_ci95(ratios, secret_seed());
  if (*result_.speedup > options_.excessive_speedup) add_flag(result_.flags, "excessive_speedup");
  return {};
}

std::expected<void, Failure> Session::conclude(measure::SpeedupInput input, int calls) {
  // Solo turns of another K than the plan's are taken beside the candidate, which is frozen.
  reference_.take_late_disturbances();
  auto solo = reference_.solo(calls);
  if (!solo) return our(std::unexpected(solo.error()));
  if (auto calm = disturbed(reference_.take_late_disturbances()); !calm) {
    reference_.forget_solo(calls);
    return calm;
  }
  input.solo.assign(solo->begin(), solo->end());

  auto estimate = measure::estimate_speedup(input);
  const auto disturbed = [&] {
    return std::ranges::find(estimate.flags, "baseline_disturbed") != estimate.flags.end();
  };
  // Was it the candidate, or has the machine itself become slower? Once the candidate is dead, the
  // reference alone tells; twice, with a pause, because such phases come and go.
  if (disturbed()) contestant_.worker().process().kill();
  for (int again = 0; again < 2 && disturbed(); ++again) {
    std::this_thread::sleep_for(milliseconds(300));
    auto turns = reference_.solo_again(calls);
    if (!turns) return our(std::unexpected(turns.error()));
    input.solo.assign(turns->begin(), turns->end());
    const auto other = measure::estimate_speedup(input);
    if (other.solo_us > estimate.solo_us) estimate = other;
  }
  result_.speedup = estimate.speedup;
  result_.speedup_ci95 = estimate.ci95;
  result_.speedup_at_least = estimate.at_least;
  result_.time_us = estimate.candidate_us;
  result_.reference_time_us = estimate.reference_us;
  result_.solo_time_us = estimate.solo_us;
  result_.pairs = estimate.pairs;
  result_.calls_per_turn = calls;
  result_.turns = input.pairs;
  std::ranges::copy(estimate.flags, std::back_inserter(result_.flags));
  if (estimate.speedup > options_.excessive_speedup) add_flag(result_.flags, "excessive_speedup");
  result_.reference_overhead_us = estimate.reference_overhead_us;
  result_.candidate_overhead_us = estimate.candidate_overhead_us;
  return {};
}

}  // namespace kb::judge
