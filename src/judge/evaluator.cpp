#include "judge/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "check/check.h"
#include "device/cpu/stress.h"
#include "judge/contestant.h"
#include "worker/cpus.h"

namespace kb::judge {

using worker::Call;
using worker::Fault;
using worker::FaultKind;

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWarmUpMs = 100;
constexpr int kTruthTrials = 2;  // plain trials that are also compared with the float64 truth
constexpr double kReducedPrecisionRatio = 10;
constexpr double kReducedPrecisionFloor = 1e-5;
constexpr int kStubTurns = 12;
constexpr auto kOverheadAge = std::chrono::seconds(60);
constexpr int kCopies = 5;  // of which the fastest is the machine's copy bandwidth

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void add_flag(std::vector<std::string>& flags, std::string flag) {
  if (std::ranges::find(flags, flag) == flags.end()) flags.push_back(std::move(flag));
}

std::vector<cpu::Tolerance> as_comparison(std::span<const Tolerances> tolerances) {
  std::vector<cpu::Tolerance> list;
  for (const auto& one : tolerances) list.push_back({one.atol, one.rtol, one.norm_rtol});
  return list;
}

// Adds its life time to a phase.
class Phase {
 public:
  Phase(Result& result, const char* name, const std::function<void(const char*)>& progress)
      : total_(result.phases_ms[name]) {
    if (progress) progress(name);
  }
  ~Phase() { total_ += ms_since(start_); }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  double& total_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

struct Evaluator::Impl {
  const Environment& environment;
  Options options;
  CpuDevice device;
  worker::TorchPool pool;
  std::unique_ptr<Reference> reference;
  std::string reference_key;
  std::vector<measure::StubTurn> native_stub;
  Clock::time_point native_overhead_at{};
  double copy_bytes_per_us = 0;
  std::size_t python_ahead = 0;

  Impl(const Environment& shared, const Options& asked)
      : environment(shared),
        options(asked),
        pool(shared.launcher, {shared.python, shared.installation_root / "python",
                               thread_count(asked), asked.memory_bytes}) {}

  sandbox::Command native_command() const {
    sandbox::Command command;
    command.argv = {environment.native_worker.string()};
    command.read_only.push_back({environment.native_worker.string(), "", false});
    command.environment = worker::worker_environment(thread_count(options));
    command.limits.memory_bytes = options.memory_bytes;
    worker::restrict_cpus(command, thread_count(options));
    return command;
  }

  std::expected<void, Fault> ready_reference(const problem::Problem& problem);
  std::expected<void, Fault> measure_native_overhead();
  double copy_bandwidth();
  Result judge(const problem::Problem& problem, const problem::Candidate& candidate,
               const build::Result& build, const std::function<void(const char*)>& progress);
};

// One evaluation's state, from the candidate's start to its end.
namespace {

class Session {
 public:
  Session(Reference& reference, Contestant& contestant, const Options& options, CpuDevice& device,
          Result& result)
      : reference_(reference),
        contestant_(contestant),
        options_(options),
        device_(device),
        result_(result),
        deadline_(Clock::now() + options.limits.evaluation) {}

  std::expected<void, Failure> correctness();
  std::expected<void, Failure> stress();
  std::expected<void, Failure> timing(const std::vector<measure::StubTurn>& candidate_stub);

 private:
  // Draws inputs, expected outputs and (if wanted) truth into slot 0, and runs one call of the
  // candidate on it.
  struct Answer {
    Call call;
    bool truth = false;
  };
  std::expected<void, Failure> our(std::expected<void, Fault> outcome) {
    if (outcome) return {};
    return std::unexpected(Failure{Verdict::infrastructure_error,
                                   "the reference worker failed: " + outcome.error().text});
  }
  std::expected<void, Failure> in_time() {
    if (Clock::now() < deadline_) return {};
    return std::unexpected(
        Failure{Verdict::timeout, fmt::format("the evaluation took more than {} s",
                                              options_.limits.evaluation.count() / 1000)});
  }
  std::expected<void, Failure> candidate_call(const Call& call);
  // Transforms the inputs that were drawn into the call's slot, each tensor under a seed of its
  // own.
  void transform(cpu::Stress kind, std::uint64_t seed, const Call& call);
  std::expected<bool, Failure> stressed(cpu::Stress kind, std::uint64_t seed, const Call& call,
                                        std::vector<cpu::Tolerance>& tolerance);
  std::expected<void, Failure> draw_many(std::span<const Call> calls);

  Reference& reference_;
  Contestant& contestant_;
  const Options& options_;
  CpuDevice& device_;
  Result& result_;
  Clock::time_point deadline_;
  bool first_call_ = true;
  bool may_plant_ = false;  // the planted transform was tried on this problem, and counts
};

std::expected<void, Failure> Session::candidate_call(const Call& call) {
  if (auto prepared = contestant_.prepare_turn(); !prepared) return prepared;
  contestant_.fill(std::span(&call, 1));
  auto turn = contestant_.turn(std::span(&call, 1),
                               first_call_ ? options_.limits.first_call : options_.limits.call);
  if (!turn) return std::unexpected(turn.error());
  if (first_call_) result_.phases_ms["first_call"] = turn->wall_us / 1000;
  return {};
}

void Session::transform(cpu::Stress kind, std::uint64_t seed, const Call& call) {
  std::size_t t = 0;
  for (const auto& input : reference_.spec().inputs)
    if (input.tensor) {
      cpu::apply_stress(kind, reference_.master(call.slot, t), input.tensor->dtype, seed + t,
                        device_.pool);
      ++t;
    }
  reference_.seal_masters(std::span(&call, 1));
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
      transform(cpu::Stress::planted, secret_seed(), calls[c]);
    }
  return our(reference_.expect(calls));
}

std::expected<void, Failure> Session::correctness() {
  const auto tolerance = as_comparison(reference_.tolerances());
  const bool public_rule = options_.rules == Rules::kernelbench;
  double worst_norm_error = 0, worst_reference_error = 0;
  bool compared_with_truth = false;
  const std::vector<cpu::Tolerance> anything_goes(reference_.spec().outputs.size(),
                                                  {1e300, 1e300, 1e300});
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
    if (auto ran = candidate_call(call); !ran) {
      result_.public_correct = false;
      return ran;
    }
    auto check = contestant_.check(0, call, tolerance);
    if (first_call_) {
      if (auto locked = contestant_.lock(); !locked) return locked;
      first_call_ = false;
    }
    result_.trials.push_back({"random", seed, true, !check.failure, check.max_abs_error});
    result_.max_abs_error = std::max(result_.max_abs_error.value_or(0), check.max_abs_error);
    result_.max_rel_error = std::max(result_.max_rel_error.value_or(0), check.max_rel_error);
    if (check.input_mutated) add_flag(result_.flags, "input_mutated");
    if (!check.within_public) result_.public_correct = false;
    if (check.failure && !failure) failure = check.failure;
    if (truth && !check.failure) {
      // The reference's own error, measured on this very trial.
      const auto mine = contestant_.check(0, call, anything_goes, true);
      double sum = 0, size = 0;
      for (std::size_t i = 0; i < reference_.spec().outputs.size(); ++i) {
        const auto& tensor = reference_.spec().outputs[i];
        if (!is_floating(tensor.dtype)) continue;
        const auto own = cpu::compare(cpu::MemorySource(reference_.expected(0, i).data()), tensor,
                                      cpu::MemorySource(reference_.truth_of(i).data()),
                                      DType::float64, {1e300, 1e300, 1e300}, 0, device_.pool);
        sum += own.error_norm * own.error_norm;
        size += own.reference_norm * own.reference_norm;
      }
      if (size > 0) {
        worst_norm_error = std::max(worst_norm_error, mine.error_norm / std::sqrt(size));
        worst_reference_error = std::max(worst_reference_error, std::sqrt(sum / size));
        compared_with_truth = true;
      }
    }
  }
  if (compared_with_truth) {
    result_.norm_error_vs_truth = worst_norm_error;
    result_.reference_norm_error_vs_truth = worst_reference_error;
    if (options_.precision == "fp32" && worst_norm_error > kReducedPrecisionFloor &&
        worst_norm_error > kReducedPrecisionRatio * worst_reference_error)
      add_flag(result_.flags, "reduced_precision");
  }
  if (public_rule && failure && *result_.public_correct) failure.reset();
  if (failure) return std::unexpected(*failure);
  return {};
}

// True where the inputs of slot 0 may be transformed so: the reference answers, finitely, and as
// float64 does. Then `tolerance` is that of the transformed inputs.
std::expected<bool, Failure> Session::stressed(cpu::Stress kind, std::uint64_t seed,
                                               const Call& call,
                                               std::vector<cpu::Tolerance>& tolerance) {
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
    const auto own = cpu::compare(cpu::MemorySource(reference_.expected(0, i).data()),
                                  spec.outputs[i], cpu::MemorySource(reference_.truth_of(i).data()),
                                  DType::float64, tolerance[i], 0, device_.pool);
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
  for (const auto kind : cpu::kAllStress) {
    if (auto on_time = in_time(); !on_time) return on_time;
    const std::uint64_t seed = secret_seed() >> 1;
    const Call call{0, secret_seed() >> 1};
    if (auto drawn = our(reference_.draw(std::span(&call, 1), std::span(&seed, 1))); !drawn)
      return drawn;
    std::vector<cpu::Tolerance> tolerance;
    const auto counts = stressed(kind, seed, call, tolerance);
    if (!counts) return std::unexpected(counts.error());
    if (!*counts) {
      result_.trials.push_back({std::string(cpu::name_of(kind)), seed, false, false, 0});
      continue;
    }
    if (auto ran = candidate_call(call); !ran) return ran;
    auto check = contestant_.check(0, call, tolerance);
    result_.trials.push_back(
        {std::string(cpu::name_of(kind)), seed, true, !check.failure, check.max_abs_error});
    if (check.failure) {
      check.failure->message = fmt::format("on inputs transformed by {}: {}", cpu::name_of(kind),
                                           check.failure->message);
      return std::unexpected(*check.failure);
    }
    if (kind == cpu::Stress::planted) may_plant_ = true;
  }
  return {};
}

std::expected<void, Failure> Session::timing(const std::vector<measure::StubTurn>& candidate_stub) {
  const auto tolerance = as_comparison(reference_.tolerances());
  measure::TurnPlan plan = reference_.plan();
  const auto slots = static_cast<unsigned>(plan.max_calls);

  // Warm up by time, touching every slot: first calls fault pages in, start threads and fill code
  // caches.
  const auto warm_start = Clock::now();
  for (int round = 0; round < 2 || (ms_since(warm_start) < kWarmUpMs && round < 20); ++round) {
    const auto calls = random_calls(plan.max_calls, slots);
    if (round == 0)
      if (auto drawn = draw_many(calls); !drawn) return drawn;
    if (auto prepared = our(reference_.prepare_turn()); !prepared) return prepared;
    if (auto timed = reference_.turn(calls); !timed) return our(std::unexpected(timed.error()));
    if (auto prepared = contestant_.prepare_turn(); !prepared) return prepared;
    contestant_.fill(calls);
    if (auto timed = contestant_.turn(calls, options_.limits.call); !timed)
      return std::unexpected(timed.error());
    if (contestant_.outputs_overlap(calls.size())) {
      plan.max_calls = 1;
      plan.single_pairs = 0;
    }
  }

  measure::SpeedupInput input;
  input.reference_stub = reference_.stub_turns();
  input.candidate_stub = candidate_stub;
  input.seed = secret_seed();

  // The order of everything is drawn before the first pair: sizes shuffled, and who goes first
  // balanced over each two pairs.
  std::mt19937_64 random(secret_seed());
  std::vector<int> sizes(static_cast<std::size_t>(plan.pairs), plan.max_calls);
  sizes.insert(sizes.end(), static_cast<std::size_t>(plan.single_pairs), 1);
  std::ranges::shuffle(sizes, random);
  std::vector<bool> candidate_first(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); i += 2) {
    candidate_first[i] = (random() & 1) != 0;
    if (i + 1 < sizes.size()) candidate_first[i + 1] = !candidate_first[i];
  }

  for (std::size_t p = 0; p < sizes.size(); ++p) {
    if (auto on_time = in_time(); !on_time) return on_time;
    const auto calls = random_calls(sizes[p], slots);
    if (auto drawn = draw_many(calls); !drawn) return drawn;
    if (auto prepared = our(reference_.prepare_turn()); !prepared) return prepared;
    if (auto prepared = contestant_.prepare_turn(); !prepared) return prepared;
    contestant_.fill(calls);
    measure::Pair pair{static_cast<int>(calls.size()), 0, 0};
    for (const bool candidate_turn : {static_cast<bool>(candidate_first[p]), !candidate_first[p]}) {
      device_.flusher.flush();
      if (!candidate_turn) {
        auto timed = reference_.turn(calls);
        if (!timed) return our(std::unexpected(timed.error()));
        pair.reference_wall_us = timed->wall_us;
        continue;
      }
      auto timed = contestant_.turn(calls, options_.limits.call);
      if (!timed) return std::unexpected(timed.error());
      pair.candidate_wall_us = timed->wall_us;
      for (std::size_t k = 0; k < calls.size(); ++k) {
        auto check = contestant_.check(k, calls[k], tolerance);
        if (check.input_mutated) add_flag(result_.flags, "input_mutated");
        if (check.failure && !(options_.rules == Rules::kernelbench && check.within_public)) {
          check.failure->message = fmt::format("in timed turn {} of {}: {}", p + 1, sizes.size(),
                                               check.failure->message);
          return std::unexpected(*check.failure);
        }
      }
    }
    input.pairs.push_back(pair);
    if (contestant_.worker().process().pids().size() > 1)
      return std::unexpected(
          Failure{Verdict::tampering, "it started another process after its first call"});
  }
  if (!contestant_.params_intact()) add_flag(result_.flags, "input_mutated");

  // Solo turns with K = 1 are needed only where the candidate forced it; it is frozen while they
  // run.
  auto solo = reference_.solo(plan.max_calls);
  if (!solo) return our(std::unexpected(solo.error()));
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
    auto turns = reference_.solo_again(plan.max_calls);
    if (!turns) return our(std::unexpected(turns.error()));
    input.solo.assign(turns->begin(), turns->end());
    const auto other = measure::estimate_speedup(input);
    if (other.solo_us > estimate.solo_us) estimate = other;
  }
  result_.speedup = estimate.speedup;
  result_.speedup_ci95 = estimate.ci95;
  result_.time_us = estimate.candidate_us;
  result_.reference_time_us = estimate.reference_us;
  result_.solo_time_us = estimate.solo_us;
  result_.pairs = estimate.pairs;
  result_.calls_per_turn = plan.max_calls;
  result_.turns = input.pairs;
  for (const auto& flag : estimate.flags) add_flag(result_.flags, flag);
  if (estimate.speedup > options_.excessive_speedup) add_flag(result_.flags, "excessive_speedup");
  result_.reference_overhead_us = estimate.reference_overhead_us;
  result_.candidate_overhead_us = estimate.candidate_overhead_us;
  return {};
}

}  // namespace

Result unjudged(const problem::Problem& problem, const problem::Candidate& candidate,
                Verdict verdict, std::string message) {
  Result result;
  result.problem = problem.label;
  result.problem_hash = problem.hash;
  result.candidate = candidate.path.filename().string();
  result.candidate_hash = candidate.hash;
  result.backend = name_of(candidate.backend);
  result.verdict = verdict;
  result.message = std::move(message);
  return result;
}

std::expected<void, Fault> Evaluator::Impl::ready_reference(const problem::Problem& problem) {
  if (reference && reference_key == problem.hash + problem.path.string()) return {};
  reference.reset();
  auto worker = pool.take();
  if (!worker) return std::unexpected(worker.error());
  if (auto hello = worker->await_hello(milliseconds(180'000)); !hello) {
    hello.error().kind = FaultKind::infrastructure;
    return std::unexpected(hello.error());
  }
  pool.pause();
  auto loaded = Reference::load(std::move(*worker), problem, options, device);
  pool.resume();
  if (!loaded) return std::unexpected(loaded.error());
  reference = std::move(*loaded);
  reference_key = problem.hash + problem.path.string();
  return {};
}

// c0 of a native worker: our null stub in the same kind of sandbox, in the same rhythm of freezing
// and flushing.
std::expected<void, Fault> Evaluator::Impl::measure_native_overhead() {
  if (native_overhead_at != Clock::time_point{} && Clock::now() - native_overhead_at < kOverheadAge)
    return {};
  auto started = worker::Worker::start(environment.launcher, native_command());
  if (!started) return std::unexpected(started.error());
  auto& worker = *started;
  constexpr milliseconds kLimit{10'000};
  if (auto hello = worker.await_hello(kLimit); !hello) return std::unexpected(hello.error());
  const auto& spec = reference->spec();
  const auto layout = worker::plan_layout(spec, 1, {{"outputs"}}, false);
  if (auto attached = worker.attach(to_json(layout, spec), layout.size, kLimit); !attached)
    return attached;
  if (auto loaded = worker.request({{"op", "load_native"}, {"stub", true}}, {}, kLimit); !loaded)
    return std::unexpected(loaded.error());
  if (auto entered = worker.enter_turns(kLimit, false); !entered) return entered;
  std::vector<measure::StubTurn> turns;
  for (int i = 0; i < kStubTurns + 2; ++i)
    for (const int count : {1, static_cast<int>(worker::kMaxCalls)}) {
      if (auto prepared = worker.prepare(kLimit); !prepared) return prepared;
      device.flusher.flush();
      auto timed = worker.run(random_calls(count, 1), false, kLimit);
      if (!timed) return std::unexpected(timed.error());
      if (i >= 2) turns.push_back({count, timed->wall_us});
    }
  native_stub = std::move(turns);
  native_overhead_at = Clock::now();
  return {};
}

// What this machine's memory can do, as a user would see it: a parallel copy, bytes read and
// written.
double Evaluator::Impl::copy_bandwidth() {
  if (copy_bytes_per_us > 0) return copy_bytes_per_us;
  const auto buffer = device.flusher.buffer();
  const std::size_t bytes = buffer.size() / 2;
  for (int i = 0; i < kCopies; ++i) {
    const auto start = Clock::now();
    cpu::copy(buffer.first(bytes), buffer.subspan(bytes, bytes), device.pool);
    copy_bytes_per_us =
        std::max(copy_bytes_per_us, static_cast<double>(2 * bytes) / (1000 * ms_since(start)));
  }
  return copy_bytes_per_us;
}

Result Evaluator::Impl::judge(const problem::Problem& problem, const problem::Candidate& candidate,
                              const build::Result& build,
                              const std::function<void(const char*)>& progress) {
  Result result = unjudged(problem, candidate, Verdict::infrastructure_error, "");
  result.compiled = true;
  result.cached_build = build.cached;
  result.tolerance = std::ranges::max(reference->tolerances(), {}, &Tolerances::widened);
  const auto end = [&](const Failure& failure) {
    result.verdict = failure.verdict;
    result.message = failure.message;
    return result;
  };
  const bool native = candidate.backend != problem::Backend::python;
  const double inputs_before = reference->inputs_ms(), model_before = reference->model_ms();
  const auto start = Clock::now();
  std::optional<Contestant> contestant;
  {
    Phase phase(result, "load", progress);
    if (native && options.timing)
      if (auto measured = measure_native_overhead(); !measured)
        return end({Verdict::infrastructure_error, measured.error().text});
    auto worker =
        native ? worker::Worker::start(environment.launcher, native_command()) : pool.take();
    if (!worker) return end({Verdict::infrastructure_error, worker.error().text});
    if (!worker->process().sandboxed()) add_flag(result.flags, "unsandboxed");
    result.freezer = worker->process().freezer_name();
    if (!native && python_ahead > 0) --python_ahead;
    contestant.emplace(std::move(*worker), candidate, build, *reference, options, device);
    if (auto loaded = contestant->load(); !loaded) return end(loaded.error());
  }
  pool.pause();
  Session session(*reference, *contestant, options, device, result);
  std::expected<void, Failure> outcome;
  {
    Phase phase(result, "correctness", progress);
    outcome = session.correctness();
  }
  if (outcome && options.stress && options.rules == Rules::own) {
    Phase phase(result, "stress", progress);
    outcome = session.stress();
  }
  if (outcome && options.timing) {
    Phase phase(result, "timing", progress);
    outcome = session.timing(native ? native_stub : std::vector<measure::StubTurn>());
  }
  if (outcome && options.timing) {
    const auto& spec = reference->spec();
    const double output_bytes = static_cast<double>(spec.output_bytes());
    const double beyond_cache =
        std::max(0.0, output_bytes - static_cast<double>(device.flusher.bytes()) / 2);
    // Inputs and weights were flushed and must come from memory; outputs may stay in the cache.
    const double bytes =
        static_cast<double>(spec.input_bytes() + spec.param_bytes()) + beyond_cache;
    result.speed_of_light_us = bytes / copy_bandwidth();
    if (*result.time_us < *result.speed_of_light_us / 2)
      add_flag(result.flags, "faster_than_physics");
  }
  pool.resume();
  if (outcome) contestant->finish();
  contestant->worker().process().kill();
  // Where the time went: drawing inputs, the two models, and everything else, which is the
  // evaluator's own cost.
  auto& phases = result.phases_ms;
  phases["inputs"] = reference->inputs_ms() - inputs_before;
  phases["reference_model"] = reference->model_ms() - model_before;
  phases["candidate_model"] = contestant->model_ms();
  phases["machinery"] =
      ms_since(start) - phases["inputs"] - phases["reference_model"] - phases["candidate_model"];
  if (options.stress && options.rules == Rules::own && !reference->has_truth())
    add_flag(result.flags, "no_truth");
  if (!outcome) {
    // KernelBench's rule knows no timed checks; but what crashes, hangs or tampers later is not
    // correct by any rule.
    if (outcome.error().verdict == Verdict::infrastructure_error)
      result.public_correct.reset();
    else if (outcome.error().verdict != Verdict::wrong_value)
      result.public_correct = false;
    return end(outcome.error());
  }
  result.verdict = Verdict::correct;
  return result;
}

Evaluator::Evaluator(const Environment& environment, const Options& options)
    : impl_(std::make_unique<Impl>(environment, options)) {}
Evaluator::~Evaluator() = default;

void Evaluator::warm_up(problem::Backend backend, std::size_t python_candidates_to_come) {
  const bool python = backend == problem::Backend::python;
  impl_->python_ahead = python_candidates_to_come;
  const std::size_t wanted = (impl_->reference ? 0u : 1u) + (python ? 1u : 0u);
  // A failure shows again, with its reason, when a worker is taken.
  (void)impl_->pool.fill(wanted);
}

std::expected<build::Result, Refusal> Evaluator::build(const problem::Problem& problem,
                                                       const problem::Candidate& candidate) const {
  switch (candidate.backend) {
    case problem::Backend::cpp: {
      auto built = impl_->environment.builder.build_cpp(candidate.source);
      if (!built) return std::unexpected(Refusal{built.error()});
      return *built;
    }
    case problem::Backend::python: {
      const auto& python = impl_->environment.python;
      auto built = impl_->environment.builder.build_python(
          candidate.source,
          {python.executable, python.folders,
           "python " + python.python_version + " torch " + python.torch_version,
           impl_->environment.installation_root / "python"},
          problem.source);
      if (!built) return std::unexpected(Refusal{built.error()});
      return *built;
    }
    case problem::Backend::cuda_cpp: break;
  }
  return std::unexpected(
      Refusal{fmt::format("{} is a CUDA kernel; this build of kernelbench judges on the CPU only",
                          candidate.path.string())});
}

std::expected<Result, Refusal> Evaluator::evaluate(
    const problem::Problem& problem, const problem::Candidate& candidate,
    const build::Result& build, const std::function<void(const char*)>& progress) {
  const auto start = Clock::now();
  const auto finish = [&](Result result) {
    result.phases_ms["compile"] = build.build_ms;
    result.phases_ms["evaluation"] = ms_since(start);
    return result;
  };
  if (auto reason = check::has_entry_point(candidate))
    return finish(unjudged(problem, candidate, Verdict::static_reject, *reason));
  switch (build.status) {
    case build::Status::ok: break;
    case build::Status::compile_error:
      return finish(unjudged(problem, candidate, Verdict::compile_error, build.log));
    case build::Status::load_error: {
      auto result = unjudged(problem, candidate, Verdict::load_error, build.log);
      result.compiled = true;
      return finish(result);
    }
    case build::Status::timeout:
      return finish(
          unjudged(problem, candidate, Verdict::timeout, "compilation did not finish in time"));
  }
  // One retry on a fresh judge: for what is ours, and for memory, which a neighbour may have held.
  Result result;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto reference_start = Clock::now();
    if (progress) progress("reference");
    auto ready = impl_->ready_reference(problem);
    const double reference_ms = ms_since(reference_start);
    if (!ready) {
      impl_->reference.reset();
      const auto& [kind, text] = ready.error();
      // What the problem does by itself it will do again.
      if (kind == FaultKind::problem)
        return std::unexpected(Refusal{fmt::format("{}: {}", problem.label, text)});
      if (kind == FaultKind::runtime || kind == FaultKind::unsupported)
        return std::unexpected(
            Refusal{fmt::format("{}: the reference itself fails: {}", problem.label, text)});
      if (kind == FaultKind::out_of_memory)
        return std::unexpected(Refusal{fmt::format(
            "{}: the reference does not fit at this size; try --size small, --set, or a larger "
            "--memory ({})",
            problem.label, text)});
      result = unjudged(problem, candidate, Verdict::infrastructure_error,
                        "the reference worker failed: " + text);
      if (attempt == 0) continue;
      break;
    }
    result = impl_->judge(problem, candidate, build, progress);
    result.phases_ms["reference"] = reference_ms;
    if (result.verdict != Verdict::infrastructure_error && result.verdict != Verdict::out_of_memory)
      break;
    impl_->reference.reset();
  }
  return finish(result);
}

}  // namespace kb::judge
