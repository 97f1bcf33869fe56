#include "measure/speedup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kb::measure {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Not;

// Walls of calls that take `us` each, behind an overhead, with a jitter of `sigma_us` a turn.
class Machine {
 public:
  Machine(Overhead overhead, double sigma_us) : overhead_(overhead), jitter_(0, sigma_us) {}
  double wall(double us, int calls) { return overhead_.at(calls) + us * calls + jitter_(random_); }
  std::vector<StubTurn> stub() const {
    std::vector<StubTurn> turns;
    for (const int calls : {1, 16})
      for (int i = 0; i < 12; ++i) turns.push_back({calls, overhead_.at(calls)});
    return turns;
  }

 private:
  Overhead overhead_;
  std::mt19937_64 random_{3};
  std::normal_distribution<double> jitter_;
};

void add_pairs(SpeedupInput& input, Machine& machine, int count, int calls, double reference_us,
               double candidate_us) {
  for (int i = 0; i < count; ++i)
    input.pairs.push_back(
        {calls, machine.wall(reference_us, calls), machine.wall(candidate_us, calls)});
}

SpeedupInput pairs_of(Machine& machine, double reference_us, double candidate_us, int calls,
                      int count) {
  SpeedupInput input;
  input.reference_stub = machine.stub();
  for (int i = 0; i < count; ++i) {
    add_pairs(input, machine, 1, calls, reference_us, candidate_us);
    input.solo.push_back({calls, machine.wall(reference_us, calls)});
  }
  return input;
}

// With what processes differ by on a GPU; no pairs yet.
SpeedupInput gpu_input(const Machine& machine) {
  SpeedupInput input;
  input.reference_stub = machine.stub();
  input.process_spread = kGpuProcessSpread;
  return input;
}

TEST(Speedup, TakesTheOverheadOffBothSides) {
  Machine machine({150, 2}, 1);
  const auto estimate = estimate_speedup(pairs_of(machine, 2000, 1000, 1, 30));
  EXPECT_NEAR(estimate.speedup, 2, 0.01);
  EXPECT_LT(estimate.ci95.low, estimate.speedup);
  EXPECT_GT(estimate.ci95.high, estimate.speedup);
  EXPECT_NEAR(estimate.candidate_us, 1000, 2);
  EXPECT_THAT(estimate.flags, IsEmpty());
}

TEST(Speedup, OfAReferenceAgainstItselfIsOne) {
  Machine machine({150, 2}, 10);
  const auto estimate = estimate_speedup(pairs_of(machine, 1000, 1000, 1, 40));
  EXPECT_NEAR(estimate.speedup, 1, 0.01);
  EXPECT_LE(estimate.ci95.low, 1);
  EXPECT_GE(estimate.ci95.high, 1);
}

TEST(Speedup, FindsAPlantedSlowdownOfTwoPercent) {
  Machine machine({150, 2}, 10);
  const auto estimate = estimate_speedup(pairs_of(machine, 2000, 2040, 1, 60));
  EXPECT_LT(estimate.ci95.high, 1);
}

// 0.02 in the logarithm: 1.96 of them are 4 % to either side, beside which the pairs' own error is
// small. It says nothing about noise.
TEST(Speedup, ItsIntervalKnowsTheLuckOfAProcess) {
  Machine machine({150, 2}, 1);
  auto input = pairs_of(machine, 2000, 1000, 1, 30);
  input.process_spread = {.log_speedup = 0.02};
  const auto estimate = estimate_speedup(input);
  EXPECT_NEAR(estimate.ci95.low, 2 * std::exp(-0.0392), 0.01);
  EXPECT_NEAR(estimate.ci95.high, 2 * std::exp(0.0392), 0.01);
  EXPECT_THAT(estimate.flags, IsEmpty());
  input.process_spread = {};
  EXPECT_LT(estimate_speedup(input).ci95.high, 2.01);
  // 25 us of turns of 2000 and 1000: hypot(1.25 %, 2.5 %).
  input.process_spread = {.turn_us = 25};
  EXPECT_NEAR(estimate_speedup(input).ci95.high, 2 * std::exp(1.96 * 0.02795), 0.01);
}

// A process that is bound by its CPU: what its turns vary by is another's luck.
TEST(Speedup, ItsIntervalKnowsTheLuckOfACpu) {
  Machine machine({150, 2}, 0);
  auto input = pairs_of(machine, 2000, 2000, 1, 40);
  // The middle 80 % lie within 1 ms: 390 us, of which 100 are usual.
  for (std::size_t i = 0; i < input.pairs.size(); ++i)
    input.pairs[i].candidate_wall_us += i % 4 == 0 ? 1000 : 0;
  const auto steady = estimate_speedup(input);
  input.process_spread = {.log_speedup = 0, .turn_us = 25, .usual_jitter_us = 100};
  const auto lucky = estimate_speedup(input);
  EXPECT_NEAR(std::log(lucky.ci95.high / lucky.speedup),
              std::hypot(std::log(steady.ci95.high / steady.speedup), 1.96 * 0.145), 0.02);
  input.process_spread = {.turn_us = 0, .usual_jitter_us = 100, .jitter_share = 0.1};
  const auto bound = estimate_speedup(input);
  EXPECT_NEAR(std::log(bound.ci95.high / bound.speedup),
              std::hypot(std::log(steady.ci95.high / steady.speedup), 1.96 * 0.0145), 0.002);
  EXPECT_GT(bound.ci95.high, steady.ci95.high * 1.01);
}

// 75 us are more than a fifth of a turn of 300 us, and less than one of 400.
TEST(Speedup, SaysWhenForgingCouldHaveMadeATurn) {
  Machine machine({150, 2}, 1);
  for (const double candidate_us : {300.0, 400.0}) {
    auto input = pairs_of(machine, 2000, candidate_us, 1, 30);
    input.forgeable_us = 75;
    const auto flags = estimate_speedup(input).flags;
    if (candidate_us < 375)
      EXPECT_THAT(flags, Contains("below_resolution"));
    else
      EXPECT_THAT(flags, IsEmpty());
  }
  auto many = pairs_of(machine, 100, 100, 8, 30);
  many.forgeable_us = 75;
  EXPECT_THAT(estimate_speedup(many).flags, IsEmpty());
}

TEST(Speedup, SaysWhenItIsNoisy) {
  Machine machine({150, 2}, 300);
  EXPECT_THAT(estimate_speedup(pairs_of(machine, 1000, 1000, 1, 30)).flags, Contains("noisy"));
}

// A candidate that does all of a turn's work in one launch: eight calls cost what one does.
TEST(Speedup, ChargesASuperbatchInFull) {
  Machine machine({150, 2}, 3);
  SpeedupInput input;
  input.reference_stub = machine.stub();
  add_pairs(input, machine, 30, 8, 100, 100.0 / 8);
  add_pairs(input, machine, 10, 1, 100, 100);
  const auto estimate = estimate_speedup(input);
  EXPECT_NEAR(estimate.speedup, 1, 0.1);
  EXPECT_EQ(estimate.pairs, 10);
  EXPECT_THAT(estimate.flags, Contains("batch_dependent"));
}

// The same with what two processes differ by anyway: it is still far more than that.
TEST(Speedup, ChargesASuperbatchThatLuckDoesNotExplain) {
  Machine machine({150, 2}, 3);
  SpeedupInput input = gpu_input(machine);
  add_pairs(input, machine, 30, 32, 150, 150.0 / 16);
  add_pairs(input, machine, 10, 1, 150, 150);
  const auto estimate = estimate_speedup(input);
  EXPECT_NEAR(estimate.speedup, 1, 0.1);
  EXPECT_THAT(estimate.flags, Contains("batch_dependent"));
}

// A process whose turns are all 40 us longer: seen by single calls of 33 us, and nobody's fault.
TEST(Speedup, DoesNotTakeAnUnluckyProcessForASuperbatch) {
  Machine machine({150, 2}, 3);
  SpeedupInput input = gpu_input(machine);
  add_pairs(input, machine, 60, 128, 33, 33);
  add_pairs(input, machine, 12, 1, 33, 33);
  for (auto& pair : input.pairs) pair.candidate_wall_us += 40;
  const auto estimate = estimate_speedup(input);
  EXPECT_NEAR(estimate.speedup, 1, 0.02);
  EXPECT_THAT(estimate.flags, IsEmpty());
}

// Faster by so little a call that 15 us of luck could be all of it; and, four times as long, not.
TEST(Speedup, ClaimsNoMoreOfAShortCallThanSingleCallsShow) {
  Machine machine({150, 2}, 3);
  for (const double call_us : {40.0, 160.0}) {
    SpeedupInput input = gpu_input(machine);
    add_pairs(input, machine, 60, 32, call_us, call_us / 2);
    add_pairs(input, machine, 20, 1, call_us, call_us / 1.6);
    const auto estimate = estimate_speedup(input);
    EXPECT_NEAR(estimate.speedup, 2, 0.05);
    EXPECT_GT(estimate.ci95.low, 1.8);
    EXPECT_THAT(estimate.flags, IsEmpty());
    if (call_us < 100)
      EXPECT_LT(estimate.at_least, 0.8);
    else
      EXPECT_THAT(estimate.at_least, testing::AllOf(testing::Gt(1), testing::Lt(1.6)));
  }
}

// What a claim is held against by single calls is not what the interval is widened by.
TEST(Speedup, DoubtsAreLargerThanLuck) {
  Machine machine({150, 2}, 3);
  SpeedupInput input = gpu_input(machine);
  add_pairs(input, machine, 60, 32, 160, 100);
  add_pairs(input, machine, 24, 1, 160, 100);
  const auto doubted = estimate_speedup(input);
  input.process_spread.doubt_us = 0;
  const auto believed = estimate_speedup(input);
  EXPECT_EQ(doubted.ci95.low, believed.ci95.low);
  EXPECT_LT(doubted.at_least, believed.at_least - 0.02);
}

// Each on a CPU of its own: turns that vary by much say little, the same turns on one CPU more.
TEST(Speedup, KnowsMoreOfPairsThatHaveSharedTheirCpus) {
  Machine machine({150, 2}, 250);
  auto input = pairs_of(machine, 2000, 2000, 1, 40);
  const auto half_width = [&](const ProcessSpread& spread) {
    input.process_spread = spread;
    const auto estimate = estimate_speedup(input);
    return std::log(estimate.ci95.high / estimate.ci95.low) / 2;
  };
  EXPECT_LT(half_width(kGpuProcessSpread), 0.8 * half_width(kUnboundGpuProcessSpread));
}

// It makes single calls unsteady, so that they seem to say nothing.
TEST(Speedup, IsNotFooledByUnsteadySingleCalls) {
  Machine machine({150, 2}, 3);
  SpeedupInput input = gpu_input(machine);
  add_pairs(input, machine, 60, 16, 300, 60);
  add_pairs(input, machine, 15, 1, 300, 300);
  add_pairs(input, machine, 5, 1, 300, 1300);
  const auto estimate = estimate_speedup(input);
  EXPECT_THAT(estimate.flags, Contains("batch_dependent"));
  EXPECT_LT(estimate.speedup, 1.1);
}

// All of it in one launch, and `done` said 75 us ahead of time: single calls look as fast as those
// of the batch, and no flag tells. It is not relied on; an honest kernel of a call long enough is.
TEST(Speedup, ReliesOnNoBatchThatForgesItsSingleCalls) {
  Machine machine({150, 2}, 20);
  const auto estimate = [&](double reference_us, double batched_us, double single_us, int calls) {
    SpeedupInput input = gpu_input(machine);
    input.forgeable_us = kGpuForgeableUs;
    add_pairs(input, machine, 45, calls, reference_us, batched_us);
    add_pairs(input, machine, 30, 1, reference_us, single_us);
    return estimate_speedup(input);
  };
  for (const double call_us : {33.0, 100.0, 250.0}) {
    const int calls = static_cast<int>(6000 / call_us);
    const auto forged =
        estimate(call_us, call_us / 1.3, std::max(call_us - kGpuForgeableUs, 1.0), calls);
    EXPECT_GT(forged.ci95.low, 1);
    EXPECT_LT(forged.at_least, 1) << call_us;
  }
  EXPECT_GT(estimate(1000, 500, 500, 6).at_least, 1.5);
  EXPECT_LT(estimate(1000, 500, 500, 6).at_least, 2);
}

// Both sides start cold, the faster one from less: no sign of a batch, though single calls show
// less of its speedup.
TEST(Speedup, DoesNotTakeAColdStartForABatch) {
  Machine machine({150, 2}, 5);
  SpeedupInput input = gpu_input(machine);
  add_pairs(input, machine, 45, 14, 440, 160);
  add_pairs(input, machine, 30, 1, 440, 160);
  for (auto& pair : input.pairs) {
    pair.reference_wall_us += 130;
    pair.candidate_wall_us += 130;
  }
  const auto estimate = estimate_speedup(input);
  EXPECT_THAT(estimate.flags, IsEmpty());
  EXPECT_GT(estimate.speedup, 2.5);
  EXPECT_THAT(estimate.at_least, testing::AllOf(testing::Gt(1.6), testing::Lt(2)));
}

TEST(Speedup, KeepsTheBatchWhenSingleCallsAgree) {
  Machine machine({150, 2}, 3);
  SpeedupInput input;
  input.reference_stub = machine.stub();
  add_pairs(input, machine, 30, 8, 100, 50);
  // Cold caches make single calls slower on both sides.
  add_pairs(input, machine, 10, 1, 130, 65);
  const auto estimate = estimate_speedup(input);
  EXPECT_NEAR(estimate.speedup, 2, 0.05);
  EXPECT_THAT(estimate.flags, Not(Contains("batch_dependent")));
}

// A candidate that slows the reference down while it exists gains nothing.
TEST(Speedup, CreditsTheSoloTimeOfADisturbedReference) {
  Machine machine({150, 2}, 5);
  SpeedupInput input = pairs_of(machine, 2000, 1000, 1, 30);
  for (auto& pair : input.pairs) pair.reference_wall_us += 2000;
  const auto estimate = estimate_speedup(input);
  EXPECT_NEAR(estimate.speedup, 2, 0.05);
  EXPECT_LT(estimate.ci95.high, 2.2);
  EXPECT_THAT(estimate.flags, Contains("baseline_disturbed"));
}

// It leaves a few of the reference's turns alone, so that they look clean.
TEST(Speedup, IsNotFooledByAFewCleanTurns) {
  Machine machine({150, 2}, 5);
  SpeedupInput input = pairs_of(machine, 2000, 1000, 1, 30);
  for (std::size_t i = 0; i < input.pairs.size(); ++i)
    if (i % 5 != 0) input.pairs[i].reference_wall_us += 2000;
  const auto estimate = estimate_speedup(input);
  EXPECT_NEAR(estimate.speedup, 2, 0.05);
  EXPECT_THAT(estimate.flags, Contains("baseline_disturbed"));
}

// An overhead that was measured in a bad moment must not make a kernel look fast.
TEST(Speedup, NeverSubtractsMoreThanTheShortestWall) {
  Machine machine({150, 0}, 5);
  SpeedupInput input = pairs_of(machine, 100, 100, 1, 30);
  input.candidate_stub = std::vector<StubTurn>(12, {1, 4000});
  const auto estimate = estimate_speedup(input);
  EXPECT_TRUE(std::isfinite(estimate.speedup));
  EXPECT_THAT(estimate.flags, Contains("below_resolution"));
}

TEST(Speedup, CarriesTheUncertaintyOfTheOverhead) {
  Machine machine({150, 0}, 1);
  SpeedupInput sure = pairs_of(machine, 400, 400, 1, 30), unsure = sure;
  unsure.candidate_stub = {};
  for (int i = 0; i < 12; ++i) unsure.candidate_stub.push_back({1, 150.0 + 10 * (i % 4)});
  const auto narrow = estimate_speedup(sure).ci95, wide = estimate_speedup(unsure).ci95;
  EXPECT_GT(wide.high - wide.low, narrow.high - narrow.low);
}

// The machine was fast while the reference was alone, and is slow for half of the pairs: nobody's
// fault.
TEST(Speedup, DoesNotBlameTheCandidateForADriftingMachine) {
  Machine machine({150, 2}, 5);
  SpeedupInput input = pairs_of(machine, 2000, 1000, 1, 30);
  for (std::size_t i = 0; i < 12; ++i) {
    input.pairs[i].reference_wall_us += 1200;
    input.pairs[i].candidate_wall_us += 600;
  }
  const auto estimate = estimate_speedup(input);
  EXPECT_NEAR(estimate.speedup, 2, 0.1);
  EXPECT_THAT(estimate.flags, Not(Contains("baseline_disturbed")));
}

TEST(Speedup, IsFiniteWhenACallIsBelowTheJitter) {
  Machine machine({150, 0}, 0.5);
  const auto estimate = estimate_speedup(pairs_of(machine, 0.2, 0.1, 1, 30));
  EXPECT_TRUE(std::isfinite(estimate.speedup));
  EXPECT_THAT(estimate.flags, Contains("below_resolution"));
  EXPECT_THAT(estimate.flags, Contains("noisy"));
}

TEST(Speedup, WithoutPairsIsNoNumber) {
  EXPECT_TRUE(std::isnan(estimate_speedup({}).speedup));
}

TEST(Overhead, IsFittedFromTwoNumbersOfCalls) {
  std::vector<StubTurn> turns;
  for (int i = 0; i < 8; ++i) {
    turns.push_back({1, 102});
    turns.push_back({16, 132});
  }
  turns.push_back({1, 900});  // an outlier does not move the lower quartile
  const auto overhead = fit_overhead(turns);
  EXPECT_NEAR(overhead.fixed_us, 100, 1e-9);
  EXPECT_NEAR(overhead.per_call_us, 2, 1e-9);
  EXPECT_EQ(fit_overhead(std::vector<StubTurn>{{1, 50}}).at(1), 50);
  EXPECT_EQ(fit_overhead({}).at(5), 0);
}

TEST(TurnPlan, HasOneCallFromFourMillisecondsUp) {
  EXPECT_EQ(plan_turns(4500, 1 << 20, 20, 6000, 0, kCpuTurns).max_calls, 1);
  EXPECT_EQ(plan_turns(4500, 1 << 20, 20, 6000, 0, kCpuTurns).single_pairs(), 0);
}

TEST(TurnPlan, BatchesSmallCallsAndMixesInSingleOnes) {
  const auto plan = plan_turns(500, 1 << 20, 20, 6000, 0, kCpuTurns);
  EXPECT_EQ(plan.max_calls, 8);
  EXPECT_EQ(plan.pairs, 45);
  EXPECT_EQ(plan.single_pairs(), 30);
  EXPECT_EQ(plan_turns(1, 16, 20, 6000, 0, kCpuTurns).max_calls, 16);
}

// As many calls as make 10 ms, as far as their slots fit; room for sixteen.
TEST(TurnPlan, OfAGpuHasLongTurns) {
  const auto limits = gpu_turns(std::size_t{14} << 30);
  EXPECT_EQ(plan_turns(2300, std::size_t{1} << 30, 20, 6000, 0, limits).max_calls, 5);
  EXPECT_EQ(plan_turns(2300, std::size_t{4} << 30, 20, 6000, 0, limits).max_calls, 3);
  EXPECT_EQ(plan_turns(2300, std::size_t{7} << 30, 20, 6000, 0, limits).max_calls, 2);
  EXPECT_EQ(plan_turns(2300, std::size_t{15} << 30, 20, 6000, 0, limits).max_calls, 1);
  const auto small = plan_turns(33, 8 << 20, 20, 6000, 0, limits);
  EXPECT_EQ(small.max_calls, 256);
  EXPECT_EQ(small.most_calls, 256);
  EXPECT_EQ(plan_turns(100, 8 << 20, 20, 6000, 0, limits).max_calls, 100);
  EXPECT_EQ(plan_turns(500, 1 << 30, 20, 6000, 0, limits).most_calls, 14);
}

// 80 us of 11.5 ms are 0.7 %, of a ratio 1 %: the median of 13 is known to 0.35 %.
TEST(TurnPlan, OfAGpuHasFewPairsOfLongTurns) {
  const auto limits = gpu_turns(std::size_t{14} << 30);
  const auto pairs = [&](double call_us, std::size_t slot_bytes) {
    return plan_turns(call_us, slot_bytes, 20, 6000, 0, limits).pairs;
  };
  EXPECT_EQ(pairs(2300, std::size_t{1} << 30), 13);  // 5 calls
  EXPECT_EQ(pairs(2300, std::size_t{4} << 30), 30);  // 3 calls
  EXPECT_EQ(pairs(400, 1 << 20), 17);                // 25 calls
  EXPECT_EQ(pairs(33, 1 << 20), 23);                 // 256 calls
  EXPECT_EQ(pairs(10, 1 << 20), 45);                 // 256 calls
  // Without single calls beside them there are more, as each of them is a check.
  EXPECT_EQ(pairs(50'000, 1 << 20), 24);
  EXPECT_EQ(pairs(500'000, 1 << 20), 10);
  const TurnLimits endless{.turn_us = 1e9, .calls = 100, .slot_bytes = 1 << 30, .jitter_us = 80};
  EXPECT_EQ(plan_turns(900, 1 << 20, 20, 6000, 0, endless).pairs, 10);
}

// However long a call takes; not more than fit.
TEST(TurnPlan, HasAsManyCallsAsItsLimitsWhereTurnsAreToBeEndless) {
  const TurnLimits limits{
      .turn_us = std::numeric_limits<double>::infinity(), .calls = 5, .slot_bytes = 256u << 20};
  const auto plan = plan_turns(50'000, 1 << 20, 20, 6000, 0, limits);
  EXPECT_EQ(plan.max_calls, 5);
  EXPECT_EQ(plan.most_calls, 5);
  EXPECT_EQ(plan_turns(50'000, 100u << 20, 20, 6000, 0, limits).max_calls, 2);
}

TEST(TurnPlan, KeepsSlotsWithin256MiB) {
  EXPECT_EQ(plan_turns(100, 300u << 20, 20, 6000, 0, kCpuTurns).max_calls, 1);
  EXPECT_EQ(plan_turns(100, 100u << 20, 20, 6000, 0, kCpuTurns).max_calls, 2);
}

TEST(TurnPlan, FitsTheBudgetWithinBounds) {
  EXPECT_EQ(plan_turns(500, 1 << 20, 1, 6000, 0, kCpuTurns).pairs, 45);
  EXPECT_EQ(plan_turns(500, 1 << 20, 150, 6000, 0, kCpuTurns).pairs, 37);
  EXPECT_EQ(plan_turns(4500, 1 << 20, 1, 6000, 0, kCpuTurns).pairs, 30);
  EXPECT_EQ(plan_turns(100'000, 1 << 20, 20, 6000, 0, kCpuTurns).pairs, 30);
  EXPECT_EQ(plan_turns(500'000, 1 << 20, 20, 6000, 0, kCpuTurns).pairs, 10);
  EXPECT_EQ(plan_turns(500'000, 1 << 20, 20, 6000, 100, kCpuTurns).pairs, 100);
}

// Nine of the candidate's calls of 60 us make a turn of over 500 us; the reference's turn takes
// what it must, and the budget says how often.
TEST(TurnPlan, GetsLongerForAFastCandidate) {
  const auto plan = plan_turns(12'000, 1 << 20, 20, 6000, 0, gpu_turns(std::size_t{7} << 30));
  ASSERT_EQ(plan.max_calls, 1);
  EXPECT_EQ(plan.most_calls, 16);
  EXPECT_EQ(plan.pairs, 24);
  const auto longer = lengthened(plan, 12'000, 60, kLeastGpuTurnUs, 6000);
  EXPECT_EQ(longer.max_calls, 9);
  EXPECT_EQ(longer.pairs, 18);
  EXPECT_EQ(longer.single_pairs(), 12);
  EXPECT_EQ(lengthened(plan, 12'000, 0, kLeastGpuTurnUs, 6000).max_calls, 16);
  EXPECT_EQ(lengthened(plan, 12'000, -5, kLeastGpuTurnUs, 6000).max_calls, 16);
  // Long enough, but short: as many pairs as there may be.
  const auto more = lengthened(plan, 12'000, 600, kLeastGpuTurnUs, 6000);
  EXPECT_EQ(more.max_calls, 1);
  EXPECT_EQ(more.pairs, 30);
  EXPECT_EQ(lengthened(plan, 12'000, 12'000, kLeastGpuTurnUs, 6000).pairs, 24);
}

TEST(TurnPlan, GetsNoLongerThanSlotsAndBudgetAllow) {
  const auto big =
      plan_turns(4000, std::size_t{3} << 30, 20, 6000, 0, gpu_turns(std::size_t{7} << 30));
  EXPECT_EQ(lengthened(big, 4000, 60, kLeastGpuTurnUs, 6000).max_calls, 2);
  // 10 pairs of 3 * 50 ms a call in 12 s: 8 calls.
  const auto slow = plan_turns(50'000, 1 << 20, 20, 6000, 0, gpu_turns(std::size_t{7} << 30));
  const auto longer = lengthened(slow, 50'000, 20, kLeastGpuTurnUs, 6000);
  EXPECT_EQ(longer.max_calls, 8);
  EXPECT_EQ(longer.pairs, 12);  // and 12 single ones
}

// Where nothing is lengthened the budget takes no pair away: on a CPU, say.
TEST(TurnPlan, StaysAsItIsForACandidateLikeTheReference) {
  const auto plan = plan_turns(100'000, 1 << 20, 20, 6000, 0, kCpuTurns);
  const auto same = lengthened(plan, 100'000, 100'000, kLeastGpuTurnUs, 6000);
  EXPECT_EQ(same.max_calls, 1);
  EXPECT_EQ(same.pairs, 30);
}

TEST(TurnPlan, FitsFewerSlotsWithMorePairs) {
  const auto plan = plan_turns(500, 1 << 20, 20, 6000, 0, gpu_turns(std::size_t{7} << 30));
  ASSERT_EQ(plan.max_calls, 20);
  EXPECT_EQ(within_slots(plan, 20).pairs, plan.pairs);
  const auto fewer = within_slots(plan, 8);
  EXPECT_EQ(fewer.max_calls, 8);
  EXPECT_EQ(fewer.most_calls, 8);
  EXPECT_EQ(fewer.pairs, 30);
  EXPECT_EQ(fewer.single_pairs(), plan.single_pairs());
  EXPECT_EQ(within_slots(plan, 1).single_pairs(), 0);
}

TEST(TurnPlan, GetsShorterForASlowCandidate) {
  const auto plan = plan_turns(50, 1 << 20, 20, 6000, 0, gpu_turns(std::size_t{7} << 30));
  ASSERT_EQ(plan.max_calls, 200);
  EXPECT_EQ(shortened(plan, 150, kMostTurnUs).max_calls, 200);
  EXPECT_EQ(shortened(plan, 3000, kMostTurnUs).max_calls, 10);
  const auto single = shortened(plan, 1e6, kMostTurnUs);
  EXPECT_EQ(single.max_calls, 1);
  EXPECT_EQ(single.single_pairs(), 0);
  EXPECT_EQ(single.pairs, 30);
}

TEST(TurnPlan, OfFewPairsStaysOfFewPairs) {
  const auto plan = plan_turns(4000, 1 << 20, 20, 6000, 4, gpu_turns(std::size_t{7} << 30));
  EXPECT_EQ(plan.single_pairs(), 4);
  EXPECT_EQ(lengthened(plan, 4000, 60, kLeastGpuTurnUs, 6000).pairs, 4);
  EXPECT_EQ(within_slots(plan, 1).pairs, 4);
}

}  // namespace
}  // namespace kb::measure
