// How often a speedup would be verified, by the judge's own estimate, of simulated turns on a GPU:
// of honest kernels, and of kernels that are no faster than the reference, but do all calls of a
// turn in one launch and say `done` ahead of time.
//
//   build/release/bench/verification_bench [--runs 60] [--noise 85] [--luck 10] [--cold 60]
//
// Turns are planned as the judge plans them. A wall is c0, the calls, a cold start, the luck of its
// process and noise; docs/performance.md has what an H200 showed of each.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <random>

#include "measure/speedup.h"
#include "score/evaluation.h"

namespace {

using namespace kb::measure;  // NOLINT: a program's only file

constexpr double kOverheadUs = 400, kOverheadNoiseUs = 15;
constexpr int kStubTurns = 40;
constexpr double kPairMs = 15, kBudgetMs = 6000;

struct Noise {
  double turn_us = 85, process_us = 10;  // standard deviations
  double reference_cold_us = 60, candidate_cold_us = 60;
};

struct Kernel {
  double call_us;    // in a turn of many calls
  double single_us;  // in a turn of one
  double forged_us;  // of each turn
};

SpeedupInput simulate(double reference_us, const Kernel& kernel, const Noise& noise,
                      std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const double reference_luck = noise.process_us * normal(random);
  const double candidate_luck = noise.process_us * normal(random);
  const TurnPlan plan = plan_turns(reference_us, 1, kPairMs, kBudgetMs, 0, gpu_turns(1 << 20));
  SpeedupInput input;
  input.process_spread = kGpuProcessSpread;
  input.forgeable_us = kGpuForgeableUs;
  input.seed = random();
  for (int i = 0; i < kStubTurns; ++i)
    for (const int calls : {1, plan.most_calls})
      input.reference_stub.push_back({calls, kOverheadUs + kOverheadNoiseUs * normal(random)});
  const auto pair = [&](int calls, double call_us) {
    const double reference = kOverheadUs + calls * reference_us + noise.reference_cold_us +
                             reference_luck + noise.turn_us * normal(random);
    const double candidate = kOverheadUs + calls * call_us + noise.candidate_cold_us +
                             candidate_luck + noise.turn_us * normal(random) - kernel.forged_us;
    input.pairs.push_back({calls, reference, std::max(candidate, 1.0)});
  };
  for (int i = 0; i < plan.pairs; ++i) pair(plan.max_calls, kernel.call_us);
  for (int i = 0; i < plan.single_pairs(); ++i) pair(1, kernel.single_us);
  return input;
}

void report(const char* what, double reference_us, double factor, const Kernel& kernel,
            const Noise& noise, int runs) {
  std::mt19937_64 random(1);
  int above = 0, verified = 0, batch = 0;
  double at_least = 0;
  for (int i = 0; i < runs; ++i) {
    const auto estimate = estimate_speedup(simulate(reference_us, kernel, noise, random));
    above += estimate.ci95.low > 1;
    verified += estimate.ci95.low > 1 && estimate.at_least > 1 &&
                std::ranges::none_of(estimate.flags, kb::score::disqualifies);
    batch += std::ranges::find(estimate.flags, "batch_dependent") != estimate.flags.end();
    at_least += estimate.at_least / runs;
  }
  const auto percent = [&](int count) { return 100.0 * count / runs; };
  fmt::print("{:<34} {:>9.0f} {:>7.2f} {:>9.0f} {:>9.0f} {:>9.0f} {:>9.2f}\n", what, reference_us,
             factor, percent(above), percent(verified), percent(batch), at_least);
}

}  // namespace

int main(int argc, char** argv) {
  int runs = 60;
  Noise noise;
  CLI::App app{"How often speedups are verified"};
  app.add_option("--runs", runs, "simulated evaluations of each kind")
      ->check(CLI::Range(1, 10'000));
  app.add_option("--noise", noise.turn_us, "microseconds: standard deviation of a turn's wall");
  app.add_option("--luck", noise.process_us, "the same, of a process");
  app.add_option("--cold", noise.reference_cold_us, "of a turn's first call, on both sides");
  CLI11_PARSE(app, argc, argv);
  noise.candidate_cold_us = noise.reference_cold_us;
  Noise native = noise;  // warmer than a reference in Python
  native.reference_cold_us += 40;
  native.candidate_cold_us = 0;

  fmt::print("{:<34} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9}\n", "", "us a call", "factor", "% above 1",
             "% verif.", "% batch", "at least");
  for (const double us : {30.0, 100.0, 300.0, 500.0, 1000.0, 2800.0, 11000.0})
    for (const double factor : {1.0, 1.1, 1.5, 3.0})
      report("honest", us, factor, {us / factor, us / factor, 0}, noise, runs);
  for (const double us : {33.0, 100.0, 250.0, 500.0}) {
    report("batch", us, 1.3, {us / 1.3, us, 0}, noise, runs);
    report("batch, done forged", us, 1.3, {us / 1.3, us, 70}, noise, runs);
    report("batch, done forged", us, 3, {us / 3, us, 70}, noise, runs);
    report("batch, done forged, warmer", us, 1.6, {us / 1.6, us, 70}, native, runs);
  }
  return 0;
}
