#include "judge/evaluator.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "build/nvcc.h"
#include "check/check.h"
#include "flag/flag.h"
#include "judge/building.h"
#include "judge/ceilings.h"
#include "judge/contestant.h"
#include "judge/elapsed.h"
#include "judge/physics.h"
#include "judge/session.h"

namespace kb::judge {

using worker::Call;
using worker::Fault;
using worker::FaultKind;

namespace {

using Clock = std::chrono::steady_clock;

// Those that bring kernels of their own.
constexpr std::array<std::string_view, 6> kKernelLibraries = {"cublas",   "cublasLt", "cudnn",
                                                              "cusparse", "cusolver", "cufft"};
constexpr auto kOverheadAge = std::chrono::seconds(60);
constexpr unsigned kCpusForImports = 4;
constexpr auto kSettleLimit = std::chrono::seconds(3);
// After that its times alone may be of another state of the machine.
constexpr auto kReferenceAge = std::chrono::minutes(15);

// Adds its life time to a phase.
class Phase {
 public:
  Phase(Result& result, const char* name, const std::function<void(const char*)>& progress)
      : timed_(result.phases_ms[name]) {
    if (progress) progress(name);
  }

 private:
  Timed timed_;
};

// Holds a pool's imports up; a worker that is taken goes on.
class Paused {
 public:
  explicit Paused(worker::TorchPool& pool) : pool_(pool) { pool_.pause(); }
  ~Paused() { pool_.resume(); }
  Paused(const Paused&) = delete;
  Paused& operator=(const Paused&) = delete;

 private:
  worker::TorchPool& pool_;
};

}  // namespace

struct Evaluator::Impl {
  const Environment& environment;
  Options options;
  std::unique_ptr<Device> device;
  std::string architecture;  // of a GPU, "sm_90"; empty on the CPU
  std::optional<Ceilings> ceilings;
  worker::TorchPool pool;
  std::unique_ptr<Reference> reference;
  std::string reference_key;
  Clock::time_point reference_at{};
  std::vector<measure::StubTurn> native_stub;
  Clock::time_point native_overhead_at{};
  double reference_import_ms = 0;  // that the last evaluation waited for; 0: none was loaded

  Impl(const Environment& shared, const Options& asked, std::unique_ptr<Device> on)
      : environment(shared),
        options(asked),
        device(std::move(on)),
        architecture(device->describe().value("architecture", std::string())),
        pool(shared.launcher, {shared.python, shared.installation_root / "python",
                               thread_count(asked), asked.memory_bytes, worker_needs()}) {
    auto measured = load_ceilings(setting_of(device->describe(), shared.python.torch_version));
    if (measured)
      ceilings = std::move(*measured);
    else
      spdlog::warn("{}", measured.error());
  }

  // No import may run beside a clock: on a GPU's machine with CPUs to spare it still made a turn's
  // wall jitter by 0.15 ms and more. Beside what is not timed it may, unless the CPU is the device,
  // or there are few.
  bool imports_disturb() const {
    return options.timing &&
           (!device->ends_turns() || std::thread::hardware_concurrency() < kCpusForImports);
  }

  WorkerNeeds worker_needs() const {
    auto needs = needs_of_python(*device);
    if (!environment.heap_library.empty())
      needs.folders.push_back(environment.heap_library.string());
    return needs;
  }

  sandbox::Command native_command() const {
    sandbox::Command command;
    command.argv = {environment.native_worker.string()};
    command.read_only.push_back({environment.native_worker.string(), "", false});
    command.limits.memory_bytes = options.memory_bytes;
    worker::equip(command, thread_count(options), device->worker_needs());
    return command;
  }

  std::expected<void, Fault> ready_reference(const problem::Problem& problem);
  std::expected<void, Fault> measure_native_overhead();
  // `beside_candidate` becomes the failure's.
  Result judge(const problem::Problem& problem, const problem::Candidate& candidate,
               const build::Result& build, const std::function<void(const char*)>& progress,
               bool& beside_candidate);
  void settle();
};

Result unjudged(const problem::Problem& problem, const problem::Candidate& candidate,
                Verdict verdict, std::string message) {
  Result result;
  result.problem = problem.label;
  result.problem_hash = problem.hash;
  result.candidate = candidate.path.filename().string();
  result.candidate_hash = candidate.hash;
  result.backend = name_of(candidate.language);
  result.verdict = verdict;
  result.message = std::move(message);
  return result;
}

Result judge_one_of_many(Evaluator& evaluator, const problem::Problem& problem,
                         const problem::Candidate& candidate,
                         const std::function<std::expected<build::Result, std::string>()>& build,
                         std::size_t torch_workers_to_come,
                         const std::function<void(const char*)>& progress) {
  const auto ours = [&](std::string message) {
    return unjudged(problem, candidate, Verdict::infrastructure_error, std::move(message));
  };
  try {
    evaluator.warm_up(candidate.backend, torch_workers_to_come);
    const auto built = build();
    if (!built) return ours(built.error());
    auto judged = evaluator.evaluate(problem, candidate, *built, progress);
    return judged ? std::move(*judged) : ours(std::move(judged.error().message));
  } catch (const std::exception& error) {
    return ours(error.what());
  }
}

std::expected<void, Fault> Evaluator::Impl::ready_reference(const problem::Problem& problem) {
  const auto start = Clock::now();
  reference_import_ms = 0;
  if (reference && reference_key == problem.hash + problem.path.string() &&
      start - reference_at < kReferenceAge)
    return {};
  reference.reset();
  auto oracle = pool.take(), timed = pool.take();
  if (!oracle) return std::unexpected(oracle.error());
  if (!timed) return std::unexpected(timed.error());
  for (auto* worker : {&*oracle, &*timed})
    if (auto hello = worker->await_hello(milliseconds(180'000)); !hello) {
      hello.error().kind = FaultKind::infrastructure;
      return std::unexpected(hello.error());
    }
  reference_import_ms = ms_since(start);
  std::optional<Paused> paused;
  if (options.timing) paused.emplace(pool);
  auto loaded = Reference::load(std::move(*oracle), std::move(*timed), problem, options, *device);
  if (!loaded) return std::unexpected(loaded.error());
  reference = std::move(*loaded);
  reference_key = problem.hash + problem.path.string();
  reference_at = Clock::now();
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
  auto data = device->allocate(layout.size, true);
  if (!data) return std::unexpected(Fault{FaultKind::infrastructure, data.error()});
  if (auto attached = worker.attach(to_json(layout, spec, kind_of_device(options.device)), **data,
                                    nullptr, kLimit);
      !attached)
    return attached;
  if (auto loaded = worker.request({{"op", "load_native"}, {"stub", true}}, {}, kLimit); !loaded)
    return std::unexpected(loaded.error());
  if (auto entered = worker.enter_turns(kLimit, false); !entered) return entered;
  std::vector<measure::StubTurn> turns;
  for (int i = 0; i < num_stub_turns(*device) + 2; ++i)
    for (const int count : {1, static_cast<int>(worker::kMaxCalls)}) {
      // As Contestant::prepare_turn does: bound, and not woken before the clock runs.
      worker.bind_cpu(reference->draw_cpu());
      arm_turn(worker, *device, random_calls(count, 1), false);
      auto timed = closed_turn(worker, *device, kLimit);
      if (!timed) return std::unexpected(timed.error());
      if (i >= 2) turns.push_back({count, timed->wall_us});
    }
  native_stub = std::move(turns);
  native_overhead_at = Clock::now();
  return {};
}

// A dead candidate's work leaves the device within some 50 ms. A device that stays busy, or has
// failed, is opened anew, and with it the reference.
void Evaluator::Impl::settle() {
  const auto start = Clock::now();
  while (!device->idle() && Clock::now() - start < kSettleLimit)
    std::this_thread::sleep_for(milliseconds(20));
  if (device->synchronize()) return;
  reference.reset();
  device.reset();
  // What a dead worker held of it may take a while to be given back.
  const auto reopening = Clock::now();
  while (!device && Clock::now() - reopening < kSettleLimit) {
    if (auto fresh = open_device(options.device)) device = std::move(*fresh);
    if (!device) std::this_thread::sleep_for(milliseconds(200));
  }
}

Result Evaluator::Impl::judge(const problem::Problem& problem, const problem::Candidate& candidate,
                              const build::Result& build,
                              const std::function<void(const char*)>& progress,
                              bool& beside_candidate) {
  Result result = unjudged(problem, candidate, Verdict::infrastructure_error, "");
  result.compiled = true;
  result.cached_build = build.cached;
  // Explains, and proves nothing: what it links for its own use is not seen here.
  if (candidate.backend == problem::Backend::cuda_cpp || candidate.backend == problem::Backend::hip)
    for (const auto& library : build::cuda_libraries(candidate.source))
      if (std::ranges::find(kKernelLibraries, library) != kKernelLibraries.end())
        add_flag(result.flags, "library_call");
  result.device = device->describe();
  result.tolerance = std::ranges::max(reference->tolerances(), {}, &Tolerances::widened);
  const auto end = [&](const Failure& failure) {
    beside_candidate = failure.beside_candidate;
    result.verdict = failure.verdict;
    result.message = failure.message;
    return result;
  };
  const bool native = candidate.backend != problem::Backend::python;
  std::optional<Paused> paused;
  if (imports_disturb()) paused.emplace(pool);
  const double inputs_before = reference->inputs_ms(), model_before = reference->model_ms();
  const auto start = Clock::now();
  std::optional<Contestant> contestant;
  {
    Phase phase(result, "load", progress);
    if (native && options.sealed_timing()) {
      const Paused clocked(pool);
      if (auto measured = measure_native_overhead(); !measured)
        return end({Verdict::infrastructure_error, measured.error().text});
    }
    auto worker =
        native ? worker::Worker::start(environment.launcher, native_command()) : pool.take();
    if (!worker) return end({Verdict::infrastructure_error, worker.error().text});
    if (!worker->process().sandboxed()) add_flag(result.flags, "unsandboxed");
    result.freezer = worker->process().freezer_name();
    contestant.emplace(std::move(*worker), candidate, build, *reference, options, *device,
                       environment.heap_library);
    if (auto loaded = contestant->load(); !loaded) return end(loaded.error());
  }
  Session session(*reference, *contestant, options, *device, result);
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
    const Paused clocked(pool);
    outcome = options.sealed_timing()
                  ? session.timing(native ? native_stub : std::vector<measure::StubTurn>())
                  : session.self_reported();
  }
  if (outcome && options.timing) {
    const auto bounds =
        bounds_of(reference->spec(), figures_of(*device), options.precision, ceilings);
    result.speed_of_light_us = bounds.realistic_us;
    result.work = bounds.work;
    // With inputs in a warm cache the bound is none.
    if (options.timer != Timer::host && *result.time_us < bounds.impossible_us)
      add_flag(result.flags, "faster_than_physics");
  }
  paused.reset();
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

Evaluator::Evaluator(const Environment& environment, const Options& options,
                     std::unique_ptr<Device> device)
    : impl_(std::make_unique<Impl>(environment, options, std::move(device))) {}
Evaluator::~Evaluator() = default;

void Evaluator::warm_up(problem::Backend backend, std::size_t torch_workers_to_come) {
  if (!impl_->device) return;
  const bool python = backend == problem::Backend::python;
  // An import takes as long as several evaluations on a GPU: several at a time, one for each few
  // CPUs. On the CPU they would only stand in each other's way.
  const std::size_t at_once =
      impl_->device->ends_turns() ? std::thread::hardware_concurrency() / kCpusForImports : 1;
  const std::size_t wanted =
      (impl_->reference ? 0u : 2u) + (python ? 1u : 0u) + std::min(torch_workers_to_come, at_once);
  // A failure shows again, with its reason, when a worker is taken.
  (void)impl_->pool.fill(wanted);
}

void Evaluator::stand_by() {
  constexpr std::size_t kAnyNext = 3;  // two references' and a Python candidate's
  if (impl_->device) (void)impl_->pool.fill(kAnyNext);
}

std::expected<build::Result, Refusal> Evaluator::build(const problem::Problem& problem,
                                                       const problem::Candidate& candidate) const {
  const auto& environment = impl_->environment;
  auto built = build_candidate(
      environment.builder, {environment.python, environment.installation_root, impl_->architecture},
      problem, candidate);
  if (!built) return std::unexpected(Refusal{built.error()});
  return std::move(*built);
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
    if (!impl_->device)
      return std::unexpected(
          Refusal{impl_->options.device + " has failed and cannot be opened again"});
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
    bool beside_candidate = false;
    result = impl_->judge(problem, candidate, build, progress, beside_candidate);
    impl_->settle();
    if (attempt > 0 && beside_candidate) {
      result.verdict = Verdict::runtime_error;
      result.message = "beside this candidate, twice: " + result.message;
    }
    result.phases_ms["reference"] = reference_ms;
    result.phases_ms["reference_import"] = impl_->reference_import_ms;
    if (impl_->reference_import_ms > 0 && impl_->reference)
      for (const auto& [name, ms] : impl_->reference->load_phases_ms())
        result.phases_ms["reference_" + name] = ms;
    if (result.verdict != Verdict::infrastructure_error && result.verdict != Verdict::out_of_memory)
      break;
    impl_->reference.reset();
  }
  return finish(result);
}

}  // namespace kb::judge
