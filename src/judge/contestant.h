// The candidate side of an evaluation: one sandboxed worker, used once, and the checks of what it
// leaves behind.
//
// Its data memory holds parameters, inputs and (native) outputs only. Everything here treats the
// worker's memory as hostile: sizes come from the problem's description, what the worker publishes
// is read once, and a wrong record is a verdict, never a crash.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "build/build.h"
#include "judge/device.h"
#include "judge/reference.h"
#include "judge/verdict.h"
#include "problem/problem.h"
#include "worker/worker.h"

namespace kb::judge {

/// Why a candidate's evaluation ended.
struct Failure {
  Verdict verdict;
  std::string message;
  /// With infrastructure_error: the reference failed while the candidate lived. Once that is bad
  /// luck; twice it is the candidate's doing (all memory taken, say).
  bool beside_candidate = false;
};

/// What the check of one call found.
struct Check {
  std::optional<Failure> failure;
  bool within_public =
      true;  ///< KernelBench's rule: allclose at the public tolerance against the default reference
  bool input_mutated = false;
  double max_abs_error = 0, max_rel_error = 0;
  double error_norm = 0, reference_norm = 0;  ///< over all outputs, against what was compared with
};

class Contestant {
 public:
  /// `worker` has been started (a native worker, or one of the torch pool). `build` is its finished
  /// build.
  Contestant(worker::Worker worker, const problem::Candidate& candidate, const build::Result& build,
             Reference& reference, const Options& options, Device& device,
             std::filesystem::path heap_library);

  /// Attaches, loads and constructs the candidate, and enters turn mode. Frozen afterwards.
  std::expected<void, Failure> load();
  /// Buffers restored, outputs of the last turn forgotten, and, for a `timed` turn, a call
  /// rehearsed as the reference does; on that CPU, as the turn. Frozen afterwards. Comes before a
  /// turn is armed.
  std::expected<void, Failure> prepare_turn(bool timed, std::optional<int> cpu);
  /// Copies the masters of the calls' slots into the candidate's slots, and poisons its output
  /// slots.
  void fill(std::span<const worker::Call> calls);
  /// Makes a timed turn of `calls` ready, as judge::arm_turn does; or one whose time does not
  /// matter.
  int arm_turn(std::span<const worker::Call> calls);
  void arm_untimed(std::span<const worker::Call> calls);
  /// Runs the calls that were armed, and begins the check of their outputs against the expected
  /// ones (at the earliest moment at which that can be done). `tolerances`: one an output.
  std::expected<worker::Turn, Failure> turn(milliseconds limit_per_call,
                                            std::span<const Tolerance> tolerances);
  /// The times that the worker itself reports; frozen afterwards.
  std::expected<std::vector<double>, Failure> time(const worker::TimeRequest& request,
                                                   milliseconds limit);
  /// What the check of the last turn found: one a call, in order. Once a turn. The worker is
  /// frozen.
  std::expected<std::vector<Check>, Failure> checks();
  /// Compares the only call of the last turn with the float64 truth, which must be that of its
  /// slot.
  std::expected<Check, Failure> check_against_truth();
  /// No new processes from here on; what is left of those of the first call is an offence.
  std::expected<void, Failure> lock();

  /// True when calls of the last turn returned memory that overlaps: its turns must have one call.
  bool outputs_overlap() const;
  /// After the last turn: parameters and guard bands as they were.
  std::expected<bool, Failure> params_intact();

  /// Lets the worker end by itself, which calls kb_destroy; whatever comes of it, the evaluation is
  /// over.
  void finish();

  worker::Worker& worker() { return worker_; }
  /// Milliseconds spent so far in the candidate's turns.
  double model_ms() const { return model_ms_; }

 private:
  // Where an output of a call is: a native one in its slot, a torch worker's where it published it.
  struct Place {
    std::uint64_t space = 0;  // of address: worker::PublishedIn
    std::uint64_t address = 0;
    std::uint64_t span_bytes = 0;  // from the first to the last element, inclusive
    TensorSource source;
  };
  using Places = std::vector<std::expected<Place, Failure>>;  // one an output
  // The jobs of one call's check in the list that the device was given.
  struct CallJobs {
    worker::Call call;
    Places places;
    std::size_t first_compare = 0, first_strict = 0, first_equal = 0, first_guard = 0;
  };

  Failure failure_of(const worker::Fault& fault) const;
  std::expected<Place, Failure> published(std::size_t k, std::size_t output) const;
  std::expected<void, Failure> locate(Place& place, const std::vector<std::int64_t>& strides,
                                      std::size_t output) const;
  Places places_of(std::size_t k, const worker::Call& call) const;
  // Does the public rule need a comparison of its own?
  bool tolerance_is_wider() const;
  CheckList list_checks();
  Check judge_call(const CallJobs& jobs, const CheckResults& results) const;
  std::size_t heap_bytes() const;
  bool native() const { return candidate_.backend != problem::Backend::python; }

  worker::Worker worker_;
  const problem::Candidate& candidate_;
  const build::Result& build_;
  Reference& reference_;
  const Options& options_;
  Device& device_;
  std::filesystem::path heap_library_;
  std::unique_ptr<Memory> data_, heap_;
  worker::Layout layout_;
  pid_t pid_ = 0;                      // of a torch worker's program, on the CPU
  std::vector<worker::Call> calls_;    // of the turn that is armed, or the last
  std::vector<CallJobs> jobs_;         // of the last turn
  std::vector<Tolerance> tolerances_;  // of the last turn
  std::uint64_t guard_secret_;
  double model_ms_ = 0;
};

}  // namespace kb::judge
