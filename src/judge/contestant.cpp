#include "judge/contestant.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace kb::judge {

using worker::Call;
using worker::Fault;
using worker::FaultKind;
using worker::Turn;

namespace {

constexpr milliseconds kQuietLimit{30'000};
constexpr milliseconds kPrepareLimit{5'000};  // restoring buffers, collecting garbage
constexpr std::uint64_t kMaxSpanBytes = std::uint64_t{2} << 30;

// Reads a dense tensor out of another process, block by block, while that process is stopped.
class RemoteSource final : public cpu::BlockSource {
 public:
  RemoteSource(pid_t pid, std::uint64_t address) : pid_(pid), address_(address) {}
  const std::byte* block(std::size_t offset, std::size_t size, std::byte* scratch) const override {
    return sandbox::Process::read_memory(pid_, address_ + offset, {scratch, size}) ? scratch
                                                                                   : nullptr;
  }

 private:
  pid_t pid_;
  std::uint64_t address_;
};

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
                       CpuDevice& device)
    : worker_(std::move(worker)),
      candidate_(candidate),
      build_(build),
      reference_(reference),
      options_(options),
      device_(device),
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

std::expected<void, Failure> Contestant::load() {
  if (auto hello = worker_.await_hello(milliseconds(120'000)); !hello)
    return std::unexpected(failure_of(hello.error()));
  const auto& spec = reference_.spec();
  const std::size_t guard = native() ? cpu::kGuardBytes : 0;
  // A torch worker makes its own outputs and has no use for the region.
  std::vector<worker::RegionRequest> regions;
  if (native()) regions.push_back({.name = "outputs", .float64 = false, .guard_bytes = guard});
  layout_ = worker::plan_layout(spec, static_cast<unsigned>(reference_.plan().max_calls), regions,
                                !native());
  if (auto attached = worker_.attach(to_json(layout_, spec), layout_.size, kQuietLimit); !attached)
    return std::unexpected(failure_of(attached.error()));
  auto& arena = worker_.arena();
  for (std::size_t i = 0; i < spec.params.size(); ++i)
    cpu::copy(arena.range(layout_.params[i], spec.params[i].tensor.bytes()), reference_.params()[i],
              device_.pool);
  for (const auto& [name, region] : layout_.regions)
    for (const auto& slot : region.offsets)
      for (std::size_t i = 0; i < slot.size(); ++i) {
        cpu::write_guard(arena.range(slot[i] - guard, guard), guard_secret_);
        cpu::write_guard(arena.range(slot[i] + region.tensors[i].bytes(), guard), guard_secret_);
      }

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
    request = {{"op", "load_candidate"},
               {"source", candidate_.source},
               {"path", candidate_.path.filename().string()},
               {"problem_source", problem.source},
               {"problem_path", problem.path.filename().string()},
               {"size", options_.size},
               {"set", options_.set},
               {"precision", options_.precision},
               {"device", options_.device},
               {"weight_seed", kWeightSeed},
               {"threads", thread_count(options_)},
               {"extensions", extensions}};
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

std::expected<void, Failure> Contestant::prepare_turn() {
  // A native worker has nothing to prepare: not waking it leaves it no untimed moment.
  if (native()) return {};
  if (auto done = worker_.prepare(kPrepareLimit); !done)
    return std::unexpected(failure_of(done.error()));
  return {};
}

void Contestant::fill(std::span<const Call> calls) {
  auto& arena = worker_.arena();
  for (const Call& call : calls) {
    const auto& offsets = layout_.inputs[call.slot];
    for (std::size_t t = 0; t < offsets.size(); ++t) {
      const auto from = reference_.master(call.slot, t);
      cpu::copy(arena.range(offsets[t], from.size()), from, device_.pool);
    }
    if (!native()) continue;
    const auto& region = layout_.regions.at("outputs");
    for (std::size_t i = 0; i < region.tensors.size(); ++i)
      cpu::poison(arena.range(region.offsets[call.slot][i], region.tensors[i].bytes()),
                  device_.pool);
  }
}

std::expected<Turn, Failure> Contestant::turn(std::span<const Call> calls,
                                              milliseconds limit_per_call) {
  const auto limit = limit_per_call * static_cast<int>(calls.size());
  auto turn = worker_.run(calls, reference_.spec().uses_rng, limit);
  if (!turn) return std::unexpected(failure_of(turn.error()));
  model_ms_ += turn->wall_us / 1000;
  return *turn;
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
  if (worker_.leave_turns(kPatience)) (void)worker_.request({{"op", "exit"}}, {}, kPatience);
}

std::expected<Contestant::Published, Failure> Contestant::published(std::size_t k,
                                                                    std::size_t output) {
  const auto& outputs = reference_.spec().outputs;
  const TensorSpec& spec = outputs[output];
  std::array<std::int64_t, worker::kPublicationWords> record;
  const auto bytes = worker_.arena().range(
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
  Published where{static_cast<std::uint64_t>(record[0]),
                  std::vector<std::int64_t>(record.begin() + 12, record.begin() + 12 + ndim), 0};
  // Hostile numbers: nothing here may wrap around.
  std::uint64_t last = 0;
  bool sane = true;
  for (std::size_t d = 0; d < where.strides.size(); ++d) {
    std::uint64_t reach = 0;
    sane = sane && where.strides[d] >= 0;
    if (sane && shape[d] > 1)
      sane = !__builtin_mul_overflow(static_cast<std::uint64_t>(where.strides[d]),
                                     static_cast<std::uint64_t>(shape[d] - 1), &reach) &&
             !__builtin_add_overflow(last, reach, &last);
  }
  if (!sane)
    return std::unexpected(Failure{Verdict::tampering, "a publication record makes no sense"});
  if (last >= kMaxSpanBytes / size_of(spec.dtype))
    return std::unexpected(Failure{
        Verdict::runtime_error,
        fmt::format("output {} is a view that spans over {} GiB", output, kMaxSpanBytes >> 30)});
  where.span_bytes = spec.numel() == 0 ? 0 : (last + 1) * size_of(spec.dtype);
  return where;
}

// Copies a strided tensor out of the worker and lays it out densely.
std::expected<std::vector<std::byte>, Failure> Contestant::gather(const Published& where,
                                                                  const TensorSpec& spec) {
  const Failure unreadable{Verdict::tampering, "a published output cannot be read"};
  auto pid = worker_.process().program_pid();
  std::vector<std::byte> span(where.span_bytes);
  if (!pid || !sandbox::Process::read_memory(*pid, where.address, span))
    return std::unexpected(unreadable);
  const std::size_t size = size_of(spec.dtype);
  std::vector<std::byte> dense(spec.bytes());
  std::vector<std::int64_t> index(spec.shape.size(), 0);
  const std::int64_t count = spec.numel();
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(dense.data() + static_cast<std::size_t>(i) * size,
                span.data() + static_cast<std::size_t>(offset) * size, size);
    for (std::size_t d = index.size(); d-- > 0;) {
      offset += where.strides[d];
      if (++index[d] < spec.shape[d]) break;
      offset -= where.strides[d] * spec.shape[d];
      index[d] = 0;
    }
  }
  return dense;
}

bool Contestant::outputs_overlap(std::size_t calls) {
  if (native()) return false;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (std::size_t k = 0; k < calls; ++k) {
    // Outputs of one call may share memory with each other; those of different calls may not.
    for (std::size_t i = 0; i < reference_.spec().outputs.size(); ++i) {
      const auto where = published(k, i);
      if (!where) return false;  // check() says what is wrong
      for (const auto& [begin, end] : ranges)
        if (where->span_bytes > 0 && where->address < end &&
            begin < where->address + where->span_bytes)
          return true;
    }
    for (std::size_t i = 0; i < reference_.spec().outputs.size(); ++i)
      if (const auto where = published(k, i); where && where->span_bytes > 0)
        ranges.emplace_back(where->address, where->address + where->span_bytes);
  }
  return false;
}

bool Contestant::params_intact() {
  const auto& params = reference_.params();
  for (std::size_t i = 0; i < params.size(); ++i)
    if (!cpu::equal(worker_.arena().range(layout_.params[i], params[i].size()), params[i],
                    device_.pool))
      return false;
  return true;
}

Check Contestant::check(std::size_t k, const Call& call, std::span<const cpu::Tolerance> tolerances,
                        bool against_truth) {
  Check check;
  const auto& spec = reference_.spec();
  auto& arena = worker_.arena();
  const auto fail = [&](Verdict verdict, std::string message) {
    if (!check.failure) check.failure = Failure{verdict, std::move(message)};
  };
  // Before the values: a kernel that writes to its inputs may have copied the wrong way round.
  if (!spec.mutates_inputs)
    for (std::size_t t = 0; t < layout_.inputs[call.slot].size(); ++t) {
      const auto master = reference_.master(call.slot, t);
      if (!cpu::equal(arena.range(layout_.inputs[call.slot][t], master.size()), master,
                      device_.pool))
        check.input_mutated = true;
    }

  double error_sum = 0, reference_sum = 0;
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    const TensorSpec& tensor = spec.outputs[i];
    const cpu::Tolerance& tolerance = tolerances[i];
    std::vector<std::byte> dense;
    std::optional<RemoteSource> remote;
    std::optional<cpu::MemorySource> local;
    if (native()) {
      const auto& region = layout_.regions.at("outputs");
      const std::size_t at = region.offsets[call.slot][i];
      if (!cpu::guard_intact(arena.range(at - cpu::kGuardBytes, cpu::kGuardBytes), guard_secret_) ||
          !cpu::guard_intact(arena.range(at + tensor.bytes(), cpu::kGuardBytes), guard_secret_))
        fail(Verdict::runtime_error,
             fmt::format("it wrote outside output {}: the guard band around it is damaged", i));
      local.emplace(arena.range(at, tensor.bytes()).data());
    } else {
      const auto where = published(k, i);
      if (!where) {
        fail(where.error().verdict, where.error().message);
        check.within_public = false;
        break;
      }
      if (is_dense(tensor, where->strides)) {
        const auto pid = worker_.process().program_pid();
        remote.emplace(pid ? *pid : 0, where->address);
      } else {
        auto gathered = gather(*where, tensor);
        if (!gathered) {
          fail(gathered.error().verdict, gathered.error().message);
          check.within_public = false;
          break;
        }
        dense = std::move(*gathered);
        local.emplace(dense.data());
      }
    }
    const cpu::BlockSource& candidate =
        remote ? static_cast<const cpu::BlockSource&>(*remote) : *local;
    const bool wide = against_truth && is_floating(tensor.dtype);
    const cpu::MemorySource reference(against_truth ? reference_.truth_of(i).data()
                                                    : reference_.expected(call.slot, i).data());
    const auto found =
        cpu::compare(candidate, tensor, reference, wide ? DType::float64 : tensor.dtype, tolerance,
                     secret_seed(), device_.pool);
    if (!found.readable) {
      fail(Verdict::tampering, "a published output cannot be read");
      check.within_public = false;
      break;
    }
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
    if (!against_truth) {
      const double strict = public_tolerance(options_.precision);
      bool within = found.violations == 0;
      if (tolerance.atol != strict || tolerance.rtol != strict)
        within =
            cpu::compare(candidate, tensor, reference, tensor.dtype,
                         {strict, strict, std::numeric_limits<double>::infinity()}, 0, device_.pool)
                .violations == 0;
      if (!within) check.within_public = false;
    }
    check.max_abs_error = std::max(check.max_abs_error, found.max_abs_error);
    check.max_rel_error = std::max(check.max_rel_error, found.max_rel_error);
    error_sum += found.error_norm * found.error_norm;
    reference_sum += found.reference_norm * found.reference_norm;
  }
  check.error_norm = std::sqrt(error_sum);
  check.reference_norm = std::sqrt(reference_sum);
  return check;
}

}  // namespace kb::judge
