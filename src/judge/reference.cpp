#include "judge/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <thread>

#include "judge/elapsed.h"

namespace kb::judge {

using worker::Call;
using worker::Fault;
using worker::FaultKind;
using worker::Turn;

namespace {

// The reference is trusted to end, but a mistake in a problem file must not hang us for ever.
constexpr milliseconds kReferenceLimit{600'000};
constexpr int kSoloTurns = 12;
constexpr int kLongSoloTurns = 6;  // on a GPU, whose long turns vary little
constexpr double kLongTurnUs = 5000;
constexpr double kMaxWidening = 256;
constexpr double kMaxNormTolerance = 0.1;  // twice a relative norm error of 5 %
constexpr int kErrorTrials = 2;
constexpr std::size_t kHeapReserve = std::size_t{1} << 30;
constexpr std::size_t kSlotShare = 6;  // of a GPU's free memory, for the slots of a turn
constexpr int kRoughTurns = 5;         // to plan by, of one call, and of several where it is short
constexpr int kRoughCalls = 8;
constexpr double kGpuColdUs = 1000;
constexpr double kMostRehearsedUs = 5'000;
static_assert(measure::gpu_turns(0).calls <= static_cast<int>(worker::kMaxCalls) &&
              measure::kCpuTurns.calls <= static_cast<int>(worker::kMaxCalls));
constexpr std::size_t kParamAlignment = 256;
constexpr Tolerance kAnything{1e300, 1e300, 1e300};

std::string decimal(std::uint64_t value) {
  return std::to_string(value);
}

}  // namespace

nlohmann::json load_request(const char* op, const Options& options) {
  return {{"op", op},
          {"size", options.size},
          {"set", options.set},
          {"precision", options.precision},
          {"device", kind_of_device(options.device)},
          {"weight_seed", kWeightSeed},
          {"threads", thread_count(options)}};
}

double public_tolerance(const std::string& precision) {
  return precision == "fp32" ? 1e-4 : 1e-2;
}

unsigned thread_count(const Options& options) {
  if (options.threads > 0) return options.threads;
  return static_cast<unsigned>(std::max(cpu::cpus_of(0).size(), std::size_t{1}));
}

std::vector<Call> random_calls(int count, unsigned slots) {
  std::mt19937_64 random(secret_seed());
  std::vector<std::uint32_t> order(slots);
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::shuffle(order, random);
  std::vector<Call> calls;
  // 63 bits: torch takes a seed as a signed number.
  for (int i = 0; i < count; ++i)
    calls.push_back({order[static_cast<std::size_t>(i) % slots], random() >> 1});
  return calls;
}

std::expected<std::unique_ptr<Reference>, Fault> Reference::load(worker::Worker oracle,
                                                                 worker::Worker timed,
                                                                 const problem::Problem& problem,
                                                                 const Options& options,
                                                                 Device& device) {
  std::unique_ptr<Reference> reference(
      new Reference(std::move(oracle), std::move(timed), problem, options, device));
  const auto step = [&](const char* name, auto&& body) {
    const Timed timer(reference->load_phases_ms_[name]);
    return std::expected<void, Fault>(body());
  };
  // The other worker makes its GPU context meanwhile, a third of a second; if it cannot, attach()
  // says so.
  std::jthread opening;
  if (device.ends_turns())
    opening = std::jthread([&worker = reference->timed_] {
      (void)worker.request({{"op", "open"}, {"device", "cuda"}}, {}, kReferenceLimit);
    });
  const auto problem_loaded = step("problem", [&] { return reference->load_problem(); });
  if (opening.joinable()) opening.join();
  if (!problem_loaded) return std::unexpected(problem_loaded.error());
  if (auto done = step("memory", [&] { return reference->attach(1); }); !done)
    return std::unexpected(done.error());
  // Before the times: what it needs of memory the allocator of the worker has then.
  if (auto done = step("truth", [&] { return reference->measure_error(); }); !done)
    return std::unexpected(done.error());
  if (auto done = step("overhead", [&] { return reference->measure_overhead(1); }); !done)
    return std::unexpected(done.error());
  if (auto done = step("plan", [&] { return reference->measure_alone(); }); !done)
    return std::unexpected(done.error());
  if (reference->plan_.most_calls > 1)
    if (auto done = step("memory", [&] { return reference->attach_planned(); }); !done)
      return std::unexpected(done.error());
  const bool sealed = options.sealed_timing();
  // As many as turns may ever get: c0 is linear between one call and these, and nothing of it is
  // measured beside a candidate. What was taken before it was known whether calls are rehearsed
  // counts where they are not.
  std::vector<int> counts;
  if (reference->rehearses()) {
    reference->stub_turns_.clear();
    counts.push_back(1);
  }
  if (reference->plan_.most_calls > 1) counts.push_back(reference->plan_.most_calls);
  if (sealed)
    for (const int calls : counts)
      if (auto done = step("overhead", [&] { return reference->measure_overhead(calls); }); !done)
        return std::unexpected(done.error());
  const auto solo = [&]() -> std::expected<void, Fault> {
    if (auto turns = reference->solo(reference->plan_.max_calls); !turns)
      return std::unexpected(turns.error());
    return {};
  };
  if (sealed)
    if (auto done = step("solo", solo); !done) return std::unexpected(done.error());
  reference->loaded_ = true;
  return reference;
}

std::expected<nlohmann::json, Fault> Reference::ask(nlohmann::json body) {
  worker_.resume();
  // What the judge has enqueued on the masters must be there before the worker looks at them.
  if (auto done = device_.synchronize(); !done)
    return std::unexpected(Fault{FaultKind::infrastructure, done.error()});
  return worker_.request(body, {}, kReferenceLimit);
}

std::expected<void, Fault> Reference::load_problem() {
  auto request = load_request("load_problem", options_);
  request["source"] = problem_.source;
  request["path"] = problem_.path.filename().string();
  request["memory_bytes"] = options_.memory_bytes;
  auto reply = ask(request);
  if (!reply) return std::unexpected(reply.error());
  auto spec = worker::parse_spec(reply->value("spec", nlohmann::json()));
  if (!spec) return std::unexpected(Fault{FaultKind::problem, spec.error()});
  spec_ = std::move(*spec);
  if (spec_.output_bytes() == 0)
    return std::unexpected(Fault{
        FaultKind::problem, "at this size the model returns no element: nothing can be judged"});
  return {};
}

std::expected<void, Fault> Reference::attach(unsigned slots) {
  const auto plan = [&](bool truth) {
    std::vector<worker::RegionRequest> regions = {{"expected"}};
    if (truth) regions.push_back({.name = "truth", .float64 = true, .slots = 1});
    return worker::plan_layout(spec_, slots, regions, true);
  };
  // The candidate's memory holds inputs and, for a native one, outputs. Sharing more memory than
  // there is would end in the kernel killing somebody, perhaps the judge.
  const auto needed = [&](const worker::Layout& layout) {
    // On a GPU a Python candidate gets a heap, too.
    const std::size_t heap =
        device_.ends_turns() ? kHeapReserve + 2 * slots * spec_.output_bytes() : 0;
    return layout.size + slots * (2 * spec_.input_bytes() + spec_.output_bytes()) +
           2 * spec_.param_bytes() + heap;
  };
  data_.reset();
  const std::size_t available = device_.free_bytes();
  layout_ = plan(truth_possible_);
  if (truth_possible_ && needed(layout_) > available) {
    truth_possible_ = false;
    layout_ = plan(false);
  }
  if (needed(layout_) > available)
    return std::unexpected(
        Fault{FaultKind::out_of_memory,
              fmt::format("inputs and outputs take {:.1f} GB, and {:.1f} GB are free",
                          static_cast<double>(needed(layout_)) / 1e9,
                          static_cast<double>(available) / 1e9)});
  auto data = device_.allocate(layout_.size, true);
  if (!data) return std::unexpected(Fault{FaultKind::out_of_memory, data.error()});
  data_ = std::move(*data);
  const std::string device = kind_of_device(options_.device);
  worker_.resume();
  if (auto attached =
          worker_.attach(to_json(layout_, spec_, device), *data_, nullptr, kReferenceLimit);
      !attached)
    return attached;
  if (timed_.in_turns())
    if (auto left = timed_.leave_turns(kReferenceLimit); !left) return left;
  timed_data_.reset();
  last_slot_.reset();
  timed_layout_ = worker::plan_layout(spec_, slots, {}, true);
  auto timed_data = device_.allocate(timed_layout_.size, true);
  if (!timed_data) return std::unexpected(Fault{FaultKind::out_of_memory, timed_data.error()});
  timed_data_ = std::move(*timed_data);
  timed_.resume();
  if (auto attached = timed_.attach(to_json(timed_layout_, spec_, device), *timed_data_, nullptr,
                                    kReferenceLimit);
      !attached)
    return attached;
  if (params_memory_) return {};
  if (auto exported = export_params(); !exported) return exported;
  return load_timed();
}

// As many slots as are planned, or half of them, and so on, where they do not fit beside the truth.
std::expected<void, Fault> Reference::attach_planned() {
  const bool truth_fits_one = truth_possible_;
  for (;;) {
    auto done = attach(static_cast<unsigned>(plan_.most_calls));
    const bool lost_truth = done && truth_fits_one && !truth_possible_;
    const bool too_many = lost_truth || (!done && done.error().kind == FaultKind::out_of_memory);
    if (!too_many || plan_.most_calls == 1) return done;
    plan_ = measure::within_slots(plan_, plan_.most_calls / 2);
    truth_possible_ = truth_fits_one;
  }
}

std::expected<void, Fault> Reference::export_params() {
  if (auto exported = ask({{"op", "export_params"}}); !exported)
    return std::unexpected(exported.error());
  auto memory =
      device_.allocate(spec_.param_bytes() + kParamAlignment * spec_.params.size(), false);
  if (!memory) return std::unexpected(Fault{FaultKind::out_of_memory, memory.error()});
  params_memory_ = std::move(*memory);
  std::size_t offset = 0;
  for (std::size_t i = 0; i < spec_.params.size(); ++i) {
    const std::size_t bytes = spec_.params[i].tensor.bytes();
    const auto from = data_->range(layout_.params[i], bytes);
    params_.push_back(params_memory_->range(offset, bytes));
    device_.copy(params_.back(), from);
    device_.copy(timed_data_->range(timed_layout_.params[i], bytes), from);
    offset += (bytes + kParamAlignment - 1) / kParamAlignment * kParamAlignment;
  }
  if (auto done = device_.synchronize(); !done)
    return std::unexpected(Fault{FaultKind::infrastructure, done.error()});
  return {};
}

std::expected<void, Fault> Reference::load_timed() {
  auto request = load_request("load_candidate", options_);
  request["model"] = "Model";
  request["source"] = request["problem_source"] = problem_.source;
  request["path"] = request["problem_path"] = problem_.path.filename().string();
  request["extensions"] = nlohmann::json::array();
  if (auto loaded = timed_.request(request, {}, kReferenceLimit); !loaded)
    return std::unexpected(loaded.error());
  return {};
}

std::span<std::byte> Reference::master(std::uint32_t slot, std::size_t tensor) {
  std::size_t index = 0;
  for (const auto& input : spec_.inputs)
    if (input.tensor && index++ == tensor)
      return data_->range(layout_.inputs[slot][tensor], input.tensor->bytes());
  return {};
}

std::span<const std::byte> Reference::expected(std::uint32_t slot, std::size_t output) {
  const auto& region = layout_.regions.at("expected");
  return data_->range(region.offsets[slot][output], region.tensors[output].bytes());
}

std::span<const std::byte> Reference::truth_of(std::size_t output) {
  const auto& region = layout_.regions.at("truth");
  return data_->range(region.offsets[0][output], region.tensors[output].bytes());
}

void Reference::copy_masters(std::span<const Call> calls, const worker::Layout& layout,
                             const Memory& to) {
  for (const Call& call : calls) {
    const auto& offsets = layout.inputs[call.slot];
    for (std::size_t t = 0; t < offsets.size(); ++t) {
      const auto from = master(call.slot, t);
      device_.copy(to.range(offsets[t], from.size()), from);
    }
  }
}

std::expected<void, Fault> Reference::draw(std::span<const Call> calls,
                                           std::span<const std::uint64_t> seeds) {
  nlohmann::json slots = nlohmann::json::array(), texts = nlohmann::json::array();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    slots.push_back(calls[i].slot);
    texts.push_back(decimal(seeds[i]));
  }
  const Timed timed(inputs_ms_);
  auto reply = ask({{"op", "inputs"}, {"slots", slots}, {"seeds", texts}});
  if (!reply) return std::unexpected(reply.error());
  return {};
}

std::expected<void, Fault> Reference::expect(std::span<const Call> calls) {
  return expect(calls, "default");
}

std::expected<void, Fault> Reference::expect(std::span<const Call> calls, const char* mode) {
  nlohmann::json slots = nlohmann::json::array(), texts = nlohmann::json::array();
  for (const Call& call : calls) {
    slots.push_back(call.slot);
    texts.push_back(decimal(call.call_seed));
  }
  const Timed timed(model_ms_);
  auto reply = ask({{"op", "expect"},
                    {"slots", slots},
                    {"call_seeds", texts},
                    {"mode", mode},
                    {"into", "expected"}});
  if (!reply) return std::unexpected(reply.error());
  return {};
}

std::expected<bool, Fault> Reference::truth(Call call) {
  if (!truth_possible_) return false;
  const Timed timed(model_ms_);
  auto reply = ask({{"op", "expect"},
                    {"slots", {call.slot}},
                    {"call_seeds", {decimal(call.call_seed)}},
                    {"mode", "truth"},
                    {"into", "truth"}});
  if (reply) return true;
  if (reply.error().kind != FaultKind::unsupported && reply.error().kind != FaultKind::problem &&
      reply.error().kind != FaultKind::out_of_memory && reply.error().kind != FaultKind::runtime)
    return std::unexpected(reply.error());
  return false;
}

std::expected<void, Fault> Reference::prepare_turn(std::optional<int> cpu) {
  pause();
  if (timed_.in_turns() && turns_of_stub_)
    if (auto left = timed_.leave_turns(kReferenceLimit); !left) return left;
  if (!timed_.in_turns()) {
    timed_.resume();
    turns_of_stub_ = false;
    if (auto entered = timed_.enter_turns(kReferenceLimit, false); !entered) return entered;
  }
  timed_.bind_cpu(cpu);
  return timed_.prepare(kReferenceLimit, rehearses() ? last_slot_ : std::nullopt);
}

bool Reference::rehearses() const {
  return device_.ends_turns() && call_us_ > 0 && call_us_ <= kMostRehearsedUs && spec_.repeatable &&
         !spec_.mutates_inputs;
}

int Reference::arm_turn(std::span<const Call> calls) {
  if (!turns_of_stub_) last_slot_ = calls.back().slot;
  return judge::arm_turn(timed_, device_, calls, spec_.uses_rng, [&] {
    if (!turns_of_stub_) copy_masters(calls, timed_layout_, *timed_data_);
  });
}

std::expected<Turn, Fault> Reference::turn() {
  const Timed timed(model_ms_);
  return closed_turn(timed_, device_, kReferenceLimit);
}

std::expected<std::vector<double>, Fault> Reference::time(std::span<const Call> calls,
                                                          const worker::TimeRequest& request) {
  worker_.pause();
  copy_masters(calls, timed_layout_, *timed_data_);
  if (auto done = device_.synchronize(); !done)
    return std::unexpected(Fault{FaultKind::infrastructure, done.error()});
  const Timed timed(model_ms_);
  return timed_.time(request, kReferenceLimit);
}

void Reference::traffic_of_a_pair(std::span<const Call> calls) {
  CheckList list;
  for (const Call& call : calls) {
    const auto& region = layout_.regions.at("expected");
    for (std::size_t i = 0; i < region.tensors.size(); ++i)
      device_.poison(data_->range(region.offsets[call.slot][i], region.tensors[i].bytes()));
    for (std::size_t t = 0; t < layout_.inputs[call.slot].size(); ++t)
      list.equal.push_back({master(call.slot, t), master(call.slot, t)});
  }
  device_.begin_check(std::move(list), secret_seed());
  // What it finds is no news; a failure of the device shows at the next operation.
  (void)device_.end_check();
}

std::expected<Turn, Fault> Reference::turn_alone(std::span<const Call> calls) {
  (loaded_ ? late_disturbances_ : disturbances_) += arm_turn(calls);
  return turn();
}

std::expected<Comparison, Fault> Reference::error_of(std::size_t output,
                                                     const Tolerance& tolerance) {
  const auto& truth_tensor = layout_.regions.at("truth").tensors[output];
  CompareJob job{.candidate = {.data = expected(0, output).data()},
                 .spec = spec_.outputs[output],
                 .reference = truth_of(output).data(),
                 .reference_dtype = truth_tensor.dtype,
                 .tolerance = tolerance};
  device_.begin_check({.compare = {std::move(job)}, .equal = {}, .guards = {}}, secret_seed());
  auto results = device_.end_check();
  if (!results) return std::unexpected(Fault{FaultKind::infrastructure, results.error()});
  return results->compare.front();
}

// The median wall of a few turns of so many calls, all on slot 0.
std::expected<double, Fault> Reference::rough_wall_us(int calls_per_turn) {
  std::vector<double> walls;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i <= kRoughTurns; ++i) {
    const auto calls = random_calls(calls_per_turn, 1);
    const std::uint64_t seed = secret_seed();
    if (auto drawn = draw(std::span(calls).first(1), std::span(&seed, 1)); !drawn)
      return std::unexpected(drawn.error());
    // What the first call ever starts, pools of threads say, has all CPUs.
    const auto cpu = call_us_ > 0 || i > 0 ? draw_cpu() : std::nullopt;
    if (auto prepared = prepare_turn(cpu); !prepared) return std::unexpected(prepared.error());
    auto timed = turn_alone(calls);
    if (!timed) return std::unexpected(timed.error());
    // The first call pays for lazy initialisation.
    const bool late = std::chrono::steady_clock::now() - start > std::chrono::seconds(5);
    if (i > 0 || late || timed->wall_us > 1e6) walls.push_back(timed->wall_us);
    if (late) break;
  }
  return measure::median(walls);
}

// Finds how long a call takes, roughly, and plans the turns by it.
std::expected<void, Fault> Reference::measure_alone() {
  const bool gpu = device_.ends_turns();
  const auto one = rough_wall_us(1);
  if (!one) return std::unexpected(one.error());
  // About what a turn costs without any call; the exact value is measured next and matters for
  // small calls only.
  call_us_ = std::max(*one - measure::fit_overhead(stub_turns_).at(1), 1.0);
  // On a GPU the first call of a turn starts cold, and a short one takes as long as three others.
  if (gpu && call_us_ < kGpuColdUs) {
    const auto warm = rough_wall_us(1), several = rough_wall_us(kRoughCalls);
    if (!warm) return std::unexpected(warm.error());
    if (!several) return std::unexpected(several.error());
    call_us_ = std::clamp((*several - *warm) / (kRoughCalls - 1), 1.0, call_us_);
  }
  const std::size_t slot_bytes = spec_.input_bytes() + spec_.output_bytes();
  // Requests and stops, and the bytes that are filled, compared and flushed.
  const double bytes_ms = static_cast<double>(8 * slot_bytes + 4 * device_.cache_bytes()) /
                          (1000 * device_.copy_bytes_per_us());
  auto limits = gpu ? measure::gpu_turns(device_.free_bytes() / kSlotShare) : measure::kCpuTurns;
  if (options_.calls > 0) {
    limits.turn_us = std::numeric_limits<double>::infinity();
    limits.calls = options_.calls;
  }
  plan_ = measure::plan_turns(call_us_, slot_bytes, 10 + bytes_ms, options_.timing_budget_ms,
                              options_.pairs, limits);
  if (!options_.timing) plan_.max_calls = 1;
  if (!spec_.repeatable) plan_ = measure::within_slots(plan_, 1);
  // On a CPU nothing can be gained by forging, so turns stay as they are planned.
  if (!gpu || !spec_.repeatable || !options_.sealed_timing()) plan_.most_calls = plan_.max_calls;
  return {};
}

// c0 of a torch worker with this problem's inputs and outputs: our stub in the model's place, in
// this very process.
std::expected<void, Fault> Reference::measure_overhead(int calls) {
  worker_.pause();
  if (timed_.in_turns())
    if (auto left = timed_.leave_turns(kReferenceLimit); !left) return left;
  timed_.resume();
  turns_of_stub_ = true;
  auto outputs = nlohmann::json::array();
  for (const auto& output : spec_.outputs)
    outputs.push_back({{"dtype", std::string(name_of(output.dtype))}, {"shape", output.shape}});
  if (auto entered = timed_.enter_turns(kReferenceLimit, false, {{"stub", std::move(outputs)}});
      !entered)
    return entered;
  for (int i = 0; i < num_stub_turns(device_) + 2; ++i) {
    // As models do: c0 is of a CPU that is as warm as theirs.
    timed_.bind_cpu(draw_cpu());
    const auto rehearsed = rehearses() ? std::optional<std::uint32_t>(0) : std::nullopt;
    if (auto prepared = timed_.prepare(kReferenceLimit, rehearsed); !prepared) return prepared;
    auto timed = turn_alone(random_calls(calls, layout_.slots));
    if (!timed) return std::unexpected(timed.error());
    if (i >= 2) stub_turns_.push_back({calls, timed->wall_us});
  }
  return {};
}

std::expected<std::span<const measure::Solo>, Fault> Reference::solo(int calls) {
  auto& turns = solo_[calls];
  const bool steady = device_.ends_turns() && calls * call_us_ >= kLongTurnUs;
  while (static_cast<int>(turns.size()) < (steady ? kLongSoloTurns : kSoloTurns)) {
    const auto chosen = random_calls(calls, layout_.slots);
    std::vector<std::uint64_t> seeds(chosen.size());
    std::ranges::generate(seeds, secret_seed);
    if (auto drawn = draw(chosen, seeds); !drawn) return std::unexpected(drawn.error());
    if (auto prepared = prepare_turn(draw_cpu()); !prepared)
      return std::unexpected(prepared.error());
    traffic_of_a_pair(chosen);
    auto timed = turn_alone(chosen);
    if (!timed) return std::unexpected(timed.error());
    turns.push_back({calls, timed->wall_us});
  }
  return std::span<const measure::Solo>(turns);
}

std::expected<std::span<const measure::Solo>, Fault> Reference::solo_again(int calls) {
  solo_.erase(calls);
  return solo(calls);
}

// The public tolerance of each output, widened to at least twice the default reference's own error
// against the float64 truth. (At least: the factor is a power of two.)
std::expected<void, Fault> Reference::measure_error() {
  const double base = public_tolerance(options_.precision);
  tolerances_.assign(spec_.outputs.size(), {base, base, base, 1});
  const Call call{0, secret_seed() >> 1};
  const double no_limit = std::numeric_limits<double>::infinity();
  bool plausible = true;
  for (int t = 0; t < kErrorTrials && truth_possible_; ++t) {
    const std::uint64_t seed = secret_seed() >> 1;
    if (auto drawn = draw(std::span(&call, 1), std::span(&seed, 1)); !drawn) return drawn;
    if (auto computed = expect(std::span(&call, 1)); !computed) return computed;
    auto known = truth(call);
    if (!known) return std::unexpected(known.error());
    if (!*known) {
      truth_possible_ = false;
      return {};
    }
    for (std::size_t i = 0; i < spec_.outputs.size(); ++i) {
      if (!is_floating(spec_.outputs[i].dtype)) continue;
      auto& own = tolerances_[i];
      // A tolerance of twice the error: the reference itself must pass at half of it.
      for (;; own.widened *= 2) {
        const double half = base * own.widened / 2;
        const auto found = error_of(i, {half, half, no_limit});
        if (!found) return std::unexpected(found.error());
        own.norm_rtol = std::max(own.norm_rtol, 2 * found->relative_norm_error());
        if (found->violations == 0 || own.widened > kMaxWidening) break;
      }
      own.atol = own.rtol = base * own.widened;
      // Rounding is not that large. Either the output is noise (its norm bound would be noise too),
      // or the float64 model answers another question: widening would then let anything pass.
      if (own.widened > kMaxWidening || own.norm_rtol > kMaxNormTolerance) {
        own = {base, base, no_limit, 1};
        plausible = false;
      }
    }
    if (device_.ends_turns())  // elsewhere the default has no reduced precision to turn off
      if (auto computed = expect(std::span(&call, 1), "strict"); !computed) return computed;
    double error = 0, size = 0;
    for (std::size_t i = 0; i < spec_.outputs.size(); ++i) {
      if (!is_floating(spec_.outputs[i].dtype)) continue;
      const auto found = error_of(i, kAnything);
      if (!found) return std::unexpected(found.error());
      error += found->error_norm * found->error_norm;
      size += found->reference_norm * found->reference_norm;
    }
    if (size > 0) strict_error_ = std::max(strict_error_, std::sqrt(error / size));
  }
  if (!plausible) truth_possible_ = false;
  return {};
}

}  // namespace kb::judge
