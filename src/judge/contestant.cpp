#include "judge/contestant.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "judge/elapsed.h"
#include "judge/turn.h"

namespace kb::judge {

using worker::Call;
using worker::Fault;
using worker::FaultKind;
using worker::Turn;

namespace {

constexpr milliseconds kQuietLimit{30'000};
constexpr milliseconds kPrepareLimit{5'000};  // restoring buffers, collecting garbage
constexpr std::uint64_t kMaxGatherBytes = std::uint64_t{2} << 30;  // of a view in a process
constexpr std::uint64_t kMostSpanBytes = std::uint64_t{1} << 46;
constexpr std::size_t kLeastHeapBytes = std::size_t{8} << 30;  // outputs may be views of more
constexpr std::size_t kHeapFactor = 4;
// However many calls a turn has, one that hangs is to be told in time.
constexpr std::size_t kMostAwaited = 16;

std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<std::int64_t>(shape[d], 1);
  }
  return strides;
}

// Strides of dimensions with one element say nothing.
bool is_dense(const TensorSpec& spec, const std::vector<std::int64_t>& strides) {
  const auto dense = dense_strides(spec.shape);
  for (std::size_t d = 0; d < strides.size(); ++d)
    if (spec.shape[d] > 1 && strides[d] != dense[d]) return false;
  return true;
}

std::string place_of(std::int64_t index, const TensorSpec& spec) {
  std::vector<std::int64_t> place(spec.shape.size());
  for (std::size_t d = spec.shape.size(); d-- > 0;) {
    place[d] = index % spec.shape[d];
    index /= spec.shape[d];
  }
  return fmt::format("[{}]", fmt::join(place, ", "));
}

}  // namespace

Contestant::Contestant(worker::Worker worker, const problem::Candidate& candidate,
                       const build::Result& build, Reference& reference, const Options& options,
                       Device& device, std::filesystem::path heap_library)
    : worker_(std::move(worker)),
      candidate_(candidate),
      build_(build),
      reference_(reference),
      options_(options),
      device_(device),
      heap_library_(std::move(heap_library)),
      guard_secret_(secret_seed()) {}

Failure Contestant::failure_of(const Fault& fault) const {
  switch (fault.kind) {
    case FaultKind::load: return {Verdict::load_error, fault.text};
    case FaultKind::runtime: return {Verdict::runtime_error, fault.text};
    case FaultKind::unsupported: return {Verdict::runtime_error, fault.text};
    case FaultKind::out_of_memory: return {Verdict::out_of_memory, fault.text};
    case FaultKind::crashed: return {Verdict::runtime_error, fault.text};
    case FaultKind::timeout: return {Verdict::timeout, fault.text};
    case FaultKind::protocol:
      return {Verdict::tampering,
              "the worker's control channel was interfered with: " + fault.text};
    // A candidate that speaks as if the problem were at fault gains nothing by it.
    case FaultKind::problem: return {Verdict::runtime_error, fault.text};
    case FaultKind::infrastructure: break;
  }
  return {Verdict::infrastructure_error, fault.text};
}

// For a torch worker on a GPU: room for its outputs, weights and temporaries. It is the candidate's
// limit of device memory.
std::size_t Contestant::heap_bytes() const {
  const auto& spec = reference_.spec();
  const std::size_t calls = static_cast<std::size_t>(reference_.plan().most_calls);
  const std::size_t wanted =
      kLeastHeapBytes +
      kHeapFactor * (calls * (spec.input_bytes() + spec.output_bytes()) + spec.param_bytes());
  // What is left serves the candidate's context and libraries, and the reference.
  return std::min(wanted, device_.free_bytes() / 10 * 7);
}

std::expected<void, Failure> Contestant::load() {
  const auto ours = [](std::string text) {
    return std::unexpected(Failure{Verdict::infrastructure_error, std::move(text)});
  };
  // Nothing of the candidate's is in the process yet.
  if (auto hello = worker_.await_hello(milliseconds(120'000)); !hello)
    return ours("a candidate's worker did not start: " + hello.error().text);
  const auto& spec = reference_.spec();
  const std::size_t guard = native() ? kGuardBytes : 0;
  // A torch worker makes its own outputs and has no use for the region.
  std::vector<worker::RegionRequest> regions;
  if (native()) regions.push_back({.name = "outputs", .float64 = false, .guard_bytes = guard});
  layout_ = worker::plan_layout(spec, static_cast<unsigned>(reference_.plan().most_calls), regions,
                                !native());
  const std::string device = kind_of_device(options_.device);
  auto layout = to_json(layout_, spec, device);
  auto data = device_.allocate(layout_.size, true);
  if (!data) return ours(data.error());
  data_ = std::move(*data);
  if (!native() && device_.ends_turns()) {
    const std::size_t bytes = heap_bytes();
    auto heap = device_.allocate(bytes, true);
    if (!heap) return ours(heap.error());
    heap_ = std::move(*heap);
    layout["heap_size"] = bytes;
    layout["heap_library"] = heap_library_.string();
  }
  for (std::size_t i = 0; i < spec.params.size(); ++i)
    device_.copy(data_->range(layout_.params[i], spec.params[i].tensor.bytes()),
                 reference_.params()[i]);
  for (const auto& [name, region] : layout_.regions)
    for (const auto& slot : region.offsets)
      for (std::size_t i = 0; i < slot.size(); ++i) {
        device_.write_guard(data_->range(slot[i] - guard, guard), guard_secret_);
        device_.write_guard(data_->range(slot[i] + region.tensors[i].bytes(), guard),
                            guard_secret_);
      }
  if (auto done = device_.synchronize(); !done) return ours(done.error());
  if (auto attached = worker_.attach(layout, *data_, heap_.get(), kQuietLimit); !attached)
    return ours("a candidate's worker could not take its memory: " + attached.error().text);

  std::vector<worker::FileDescriptor> files;
  std::vector<int> fds;
  nlohmann::json request;
  for (const auto& artifact : build_.artifacts) {
    files.emplace_back(::open(artifact.path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!files.back())
      return std::unexpected(
          Failure{Verdict::infrastructure_error,
                  fmt::format("the build cache lost {}", artifact.path.string())});
    fds.push_back(files.back().get());
  }
  if (native()) {
    request = {{"op", "load_native"}};
  } else {
    const auto& problem = reference_.problem();
    auto extensions = nlohmann::json::array();
    for (std::size_t i = 0; i < build_.artifacts.size(); ++i)
      extensions.push_back({{"name", build_.artifacts[i].name}, {"fd", i}});
    request = load_request("load_candidate", options_);
    request["source"] = candidate_.source;
    request["path"] = candidate_.path.filename().string();
    request["language"] = problem::name_of(candidate_.language);
    request["problem_source"] = problem.source;
    request["problem_path"] = problem.path.filename().string();
    request["extensions"] = std::move(extensions);
  }
  auto loaded = worker_.request(request, fds, options_.limits.load);
  if (!loaded) {
    auto failure = failure_of(loaded.error());
    if (loaded.error().kind == FaultKind::crashed) failure.verdict = Verdict::load_error;
    if (loaded.error().kind == FaultKind::problem) failure.verdict = Verdict::load_error;
    return std::unexpected(failure);
  }
  if (auto entered = worker_.enter_turns(kQuietLimit, true); !entered)
    return std::unexpected(failure_of(entered.error()));
  return {};
}

std::expected<void, Failure> Contestant::prepare_turn(bool timed, std::optional<int> cpu) {
  worker_.bind_cpu(cpu);
  // A native worker has nothing to prepare: not waking it leaves it no untimed moment.
  if (native()) return {};
  const bool rehearse = timed && reference_.rehearses() && !calls_.empty();
  const auto slot = rehearse ? std::optional(calls_.back().slot) : std::nullopt;
  const auto limit = rehearse ? kPrepareLimit + options_.limits.call : kPrepareLimit;
  if (auto done = worker_.prepare(limit, slot); !done)
    return std::unexpected(failure_of(done.error()));
  return {};
}

void Contestant::fill(std::span<const Call> calls) {
  reference_.copy_masters(calls, layout_, *data_);
  if (!native()) return;
  const auto& region = layout_.regions.at("outputs");
  for (const Call& call : calls)
    for (std::size_t i = 0; i < region.tensors.size(); ++i)
      device_.poison(data_->range(region.offsets[call.slot][i], region.tensors[i].bytes()));
}

int Contestant::arm_turn(std::span<const Call> calls) {
  calls_.assign(calls.begin(), calls.end());
  return judge::arm_turn(worker_, device_, calls, reference_.spec().uses_rng, [&] { fill(calls); });
}

void Contestant::arm_untimed(std::span<const Call> calls) {
  calls_.assign(calls.begin(), calls.end());
  fill(calls);
  worker_.arm(calls, reference_.spec().uses_rng);
}

std::expected<Turn, Failure> Contestant::turn(milliseconds limit_per_call,
                                              std::span<const Tolerance> tolerances) {
  tolerances_.assign(tolerances.begin(), tolerances.end());
  jobs_.clear();
  const auto limit = limit_per_call * static_cast<int>(std::min(calls_.size(), kMostAwaited));
  const auto check = [&] { device_.begin_check(list_checks(), secret_seed()); };
  // On a GPU the closing holds the device until the check is there: work that comes late must not
  // find a gap between the two.
  auto turn = worker_.run(limit, [&] {
    device_.begin_closing();
    const auto over = device_.closed();
    if (device_.ends_turns()) check();
    return over;
  });
  if (!turn) return std::unexpected(failure_of(turn.error()));
  if (!native()) pid_ = worker_.process().program_pid().value_or(0);
  if (!device_.ends_turns()) check();
  model_ms_ += turn->wall_us / 1000;
  return *turn;
}

std::expected<std::vector<double>, Failure> Contestant::time(const worker::TimeRequest& request,
                                                             milliseconds limit) {
  const auto start = std::chrono::steady_clock::now();
  auto times = worker_.time(request, limit);
  model_ms_ += ms_since(start);
  if (!times) return std::unexpected(failure_of(times.error()));
  return std::move(*times);
}

std::expected<void, Failure> Contestant::lock() {
  if (auto locked = worker_.lock(kQuietLimit); !locked)
    return std::unexpected(failure_of(locked.error()));
  if (worker_.process().pids().size() > 1)
    return std::unexpected(
        Failure{Verdict::tampering, "it left processes running after its first call"});
  return {};
}

void Contestant::finish() {
  constexpr milliseconds kPatience{1'000};
  const bool serves =
      worker_.in_turns() ? worker_.leave_turns(kPatience).has_value() : worker_.resume();
  if (serves) (void)worker_.request({{"op", "exit"}}, {}, kPatience);
}

std::expected<Contestant::Place, Failure> Contestant::published(std::size_t k,
                                                                std::size_t output) const {
  const auto& outputs = reference_.spec().outputs;
  const TensorSpec& spec = outputs[output];
  std::array<std::int64_t, worker::kPublicationWords> record;
  const auto bytes = worker_.control().range(
      layout_.publications + (k * outputs.size() + output) * sizeof record, sizeof record);
  std::memcpy(record.data(), bytes.data(), sizeof record);
  const auto ndim = record[2];
  if (record[3] != static_cast<std::int64_t>(outputs.size()))
    return std::unexpected(Failure{Verdict::wrong_shape,
                                   fmt::format("it returned {} tensors; the reference returns {}",
                                               record[3], outputs.size())});
  if (ndim < 0 || ndim > 8)
    return std::unexpected(Failure{Verdict::tampering, "a publication record makes no sense"});
  const std::vector<std::int64_t> shape(record.begin() + 4, record.begin() + 4 + ndim);
  if (shape != spec.shape)
    return std::unexpected(
        Failure{Verdict::wrong_shape,
                fmt::format("output {} has shape [{}]; the reference's is [{}]", output,
                            fmt::join(shape, ", "), fmt::join(spec.shape, ", "))});
  if (record[1] != static_cast<std::int64_t>(spec.dtype)) {
    const bool known = record[1] >= 0 && record[1] < kNumDTypes;
    return std::unexpected(
        Failure{Verdict::wrong_dtype,
                fmt::format("output {} is {}; the reference's is {}", output,
                            known ? name_of(static_cast<DType>(record[1])) : "of an unknown type",
                            name_of(spec.dtype))});
  }
  Place place{.space = static_cast<std::uint64_t>(record[20]),
              .address = static_cast<std::uint64_t>(record[0]),
              .span_bytes = 0,
              .source = {}};
  const std::vector<std::int64_t> strides(record.begin() + 12, record.begin() + 12 + ndim);
  if (auto located = locate(place, strides, output); !located)
    return std::unexpected(located.error());
  return place;
}

// Checks the address and strides that a worker has published, and finds what they mean here.
// Hostile numbers: nothing may wrap around.
std::expected<void, Failure> Contestant::locate(Place& place,
                                                const std::vector<std::int64_t>& strides,
                                                std::size_t output) const {
  const TensorSpec& spec = reference_.spec().outputs[output];
  const Failure nonsense{Verdict::tampering, "a publication record makes no sense"};
  std::uint64_t last = 0;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    if (strides[d] < 0) return std::unexpected(nonsense);
    std::uint64_t reach = 0;
    if (spec.shape[d] > 1 &&
        (__builtin_mul_overflow(static_cast<std::uint64_t>(strides[d]),
                                static_cast<std::uint64_t>(spec.shape[d] - 1), &reach) ||
         __builtin_add_overflow(last, reach, &last)))
      return std::unexpected(nonsense);
  }
  const std::size_t size = size_of(spec.dtype);
  if (last >= kMostSpanBytes / size) return std::unexpected(nonsense);
  place.span_bytes = spec.numel() == 0 ? 0 : (last + 1) * size;
  const bool dense = is_dense(spec, strides);
  if (!dense) place.source.strides = strides;
  if (place.space == static_cast<std::uint64_t>(worker::PublishedIn::process)) {
    if (device_.ends_turns()) return std::unexpected(nonsense);
    if (!dense && place.span_bytes > kMaxGatherBytes)
      return std::unexpected(
          Failure{Verdict::runtime_error, fmt::format("output {} is a view that spans over {} GiB",
                                                      output, kMaxGatherBytes >> 30)});
    place.source.pid = pid_;
    place.source.address = place.address;
    return {};
  }
  const Memory* memory = nullptr;
  if (place.space == static_cast<std::uint64_t>(worker::PublishedIn::data)) memory = data_.get();
  if (place.space == static_cast<std::uint64_t>(worker::PublishedIn::heap)) memory = heap_.get();
  if (memory == nullptr || place.address % size != 0 || place.address > memory->bytes().size() ||
      place.span_bytes > memory->bytes().size() - place.address)
    return std::unexpected(nonsense);
  place.source.data = memory->bytes().data() + place.address;
  return {};
}

Contestant::Places Contestant::places_of(std::size_t k, const Call& call) const {
  Places places;
  for (std::size_t i = 0; i < reference_.spec().outputs.size(); ++i) {
    if (!native()) {
      places.push_back(published(k, i));
      continue;
    }
    const std::size_t at = layout_.regions.at("outputs").offsets[call.slot][i];
    places.push_back(Place{.space = static_cast<std::uint64_t>(worker::PublishedIn::data),
                           .address = at,
                           .span_bytes = reference_.spec().outputs[i].bytes(),
                           .source = {.data = data_->bytes().data() + at}});
  }
  return places;
}

bool Contestant::tolerance_is_wider() const {
  const double strict = public_tolerance(options_.precision);
  return std::ranges::any_of(tolerances_, [&](const Tolerance& tolerance) {
    return tolerance.atol != strict || tolerance.rtol != strict;
  });
}

// What the device is to look at when the calls have been made. The outputs are found now, and once:
// what the worker publishes later changes nothing.
CheckList Contestant::list_checks() {
  const auto& spec = reference_.spec();
  const double strict = public_tolerance(options_.precision);
  CheckList list;
  for (std::size_t k = 0; k < calls_.size(); ++k) {
    const Call& call = calls_[k];
    CallJobs jobs{.call = call,
                  .places = places_of(k, call),
                  .first_compare = list.compare.size(),
                  .first_equal = list.equal.size(),
                  .first_guard = list.guards.size()};
    const auto compare_all = [&](const auto& tolerance_of) {
      for (std::size_t i = 0; i < spec.outputs.size(); ++i)
        if (jobs.places[i])
          list.compare.push_back({.candidate = jobs.places[i]->source,
                                  .spec = spec.outputs[i],
                                  .reference = reference_.expected(call.slot, i).data(),
                                  .reference_dtype = spec.outputs[i].dtype,
                                  .tolerance = tolerance_of(i)});
    };
    compare_all([&](std::size_t i) { return tolerances_[i]; });
    jobs.first_strict = list.compare.size();
    if (tolerance_is_wider())
      compare_all([&](std::size_t) {
        return Tolerance{strict, strict, std::numeric_limits<double>::infinity()};
      });
    if (!spec.mutates_inputs)
      for (std::size_t t = 0; t < layout_.inputs[call.slot].size(); ++t) {
        const auto master = reference_.master(call.slot, t);
        list.equal.push_back({data_->range(layout_.inputs[call.slot][t], master.size()), master});
      }
    if (native()) {
      const auto& region = layout_.regions.at("outputs");
      for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
        const std::size_t at = region.offsets[call.slot][i];
        list.guards.push_back({data_->range(at - kGuardBytes, kGuardBytes), guard_secret_});
        list.guards.push_back(
            {data_->range(at + region.tensors[i].bytes(), kGuardBytes), guard_secret_});
      }
    }
    jobs_.push_back(std::move(jobs));
  }
  return list;
}

bool Contestant::outputs_overlap() const {
  if (native()) return false;
  struct Range {
    std::uint64_t space, begin, end;
  };
  std::vector<Range> ranges;
  for (const auto& jobs : jobs_) {
    // Outputs of one call may share memory with each other; those of different calls may not.
    const std::size_t before = ranges.size();
    for (const auto& place : jobs.places) {
      if (!place) return false;  // checks() says what is wrong
      if (place->span_bytes == 0) continue;
      const Range own{place->space, place->address, place->address + place->span_bytes};
      for (std::size_t i = 0; i < before; ++i)
        if (ranges[i].space == own.space && own.begin < ranges[i].end && ranges[i].begin < own.end)
          return true;
      ranges.push_back(own);
    }
  }
  return false;
}

std::expected<bool, Failure> Contestant::params_intact() {
  CheckList list;
  const auto& params = reference_.params();
  for (std::size_t i = 0; i < params.size(); ++i)
    list.equal.push_back({data_->range(layout_.params[i], params[i].size()), params[i]});
  device_.begin_check(std::move(list), secret_seed());
  const auto results = device_.end_check();
  if (!results)
    return std::unexpected(Failure{Verdict::infrastructure_error, results.error(), true});
  return std::ranges::all_of(results->equal, [](bool same) { return same; });
}

std::expected<std::vector<Check>, Failure> Contestant::checks() {
  const auto results = device_.end_check();
  if (!results)
    return std::unexpected(Failure{Verdict::infrastructure_error, results.error(), true});
  std::vector<Check> checks;
  for (const auto& jobs : jobs_) checks.push_back(judge_call(jobs, *results));
  return checks;
}

std::expected<Check, Failure> Contestant::check_against_truth() {
  const auto& spec = reference_.spec();
  CheckList list;
  for (std::size_t i = 0; i < spec.outputs.size(); ++i)
    if (const auto& place = jobs_.front().places[i]; place && is_floating(spec.outputs[i].dtype))
      list.compare.push_back({.candidate = place->source,
                              .spec = spec.outputs[i],
                              .reference = reference_.truth_of(i).data(),
                              .reference_dtype = DType::float64,
                              .tolerance = {1e300, 1e300, 1e300}});
  device_.begin_check(std::move(list), secret_seed());
  const auto results = device_.end_check();
  if (!results)
    return std::unexpected(Failure{Verdict::infrastructure_error, results.error(), true});
  Check check;
  for (const auto& found : results->compare) {
    check.error_norm = std::hypot(check.error_norm, found.error_norm);
    check.reference_norm = std::hypot(check.reference_norm, found.reference_norm);
  }
  return check;
}

Check Contestant::judge_call(const CallJobs& jobs, const CheckResults& results) const {
  Check check;
  const auto& spec = reference_.spec();
  const auto fail = [&](Verdict verdict, std::string message) {
    if (!check.failure) check.failure = Failure{verdict, std::move(message)};
  };
  if (!spec.mutates_inputs)
    for (std::size_t t = 0; t < layout_.inputs[jobs.call.slot].size(); ++t)
      if (!results.equal[jobs.first_equal + t]) check.input_mutated = true;

  std::size_t compared = 0;
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    const TensorSpec& tensor = spec.outputs[i];
    const auto& place = jobs.places[i];
    if (!place) {
      fail(place.error().verdict, place.error().message);
      check.within_public = false;
      continue;
    }
    if (native() && (!results.guards_intact[jobs.first_guard + 2 * i] ||
                     !results.guards_intact[jobs.first_guard + 2 * i + 1]))
      fail(Verdict::runtime_error,
           fmt::format("it wrote outside output {}: the guard band around it is damaged", i));
    const Comparison& found = results.compare[jobs.first_compare + compared];
    // Where nothing was widened, the one comparison tells both.
    const std::size_t strict = jobs.first_strict + compared;
    ++compared;
    if (!found.readable) {
      fail(Verdict::tampering, "a published output cannot be read");
      check.within_public = false;
      continue;
    }
    const Tolerance& tolerance = tolerances_[i];
    if (found.violations > 0)
      fail(Verdict::wrong_value,
           fmt::format("output {}: {} of {} elements are outside the tolerance (atol {:.3g}, rtol "
                       "{:.3g}); the first at {}: {:.9g} instead of {:.9g}{}",
                       i, found.violations, found.elements, tolerance.atol, tolerance.rtol,
                       place_of(found.first_violation, tensor), found.candidate_at_first,
                       found.reference_at_first,
                       found.nonfinite_mismatches > 0
                           ? fmt::format("; {} places of NaN or infinity differ",
                                         found.nonfinite_mismatches)
                           : ""));
    else if (!found.within_tolerance)
      fail(Verdict::wrong_value,
           fmt::format("output {}: every element is within atol {:.3g}, but the relative norm "
                       "error is {:.3g} (limit {:.3g})",
                       i, tolerance.atol, found.relative_norm_error(), tolerance.norm_rtol));
    const bool has_strict = tolerance_is_wider();
    const Comparison& by_public_rule = has_strict ? results.compare[strict] : found;
    if (by_public_rule.violations > 0) check.within_public = false;
    check.max_abs_error = std::max(check.max_abs_error, found.max_abs_error);
    check.max_rel_error = std::max(check.max_rel_error, found.max_rel_error);
    check.error_norm = std::hypot(check.error_norm, found.error_norm);
    check.reference_norm = std::hypot(check.reference_norm, found.reference_norm);
  }
  return check;
}

}  // namespace kb::judge
