// The candidate side of an evaluation: one sandboxed worker, used once, and the checks of what it
// leaves behind.
//
// Its arena holds inputs and (native) outputs only. Everything here treats the worker's memory as
// hostile: it is read while the worker is stopped, sizes come from the problem's description, and a
// wrong record is a verdict, never a crash.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "build/build.h"
#include "device/cpu/compare.h"
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
             Reference& reference, const Options& options, CpuDevice& device);

  /// Attaches, loads and constructs the candidate, and enters turn mode. Frozen afterwards.
  std::expected<void, Failure> load();
  /// Buffers restored, outputs of the last turn forgotten. Frozen afterwards. Must come before
  /// `fill`.
  std::expected<void, Failure> prepare_turn();
  /// Copies the masters of the calls' slots into the candidate's slots, and poisons its output
  /// slots.
  void fill(std::span<const worker::Call> calls);
  std::expected<worker::Turn, Failure> turn(std::span<const worker::Call> calls,
                                            milliseconds limit_per_call);
  /// No new processes from here on; what is left of those of the first call is an offence.
  std::expected<void, Failure> lock();

  /// `tolerances`: one an output.
  /// Checks the k-th call of the last turn against the expected outputs (`against_truth`: against
  /// the float64 truth instead, which must be that of the call's slot). The worker is frozen.
  Check check(std::size_t k, const worker::Call& call, std::span<const cpu::Tolerance> tolerances,
              bool against_truth = false);
  /// True when calls of the last turn returned memory that overlaps: its turns must have one call.
  bool outputs_overlap(std::size_t calls);
  /// After the last turn: parameters and guard bands as they were.
  bool params_intact();

  /// Lets the worker end by itself, which calls kb_destroy; whatever comes of it, the evaluation is
  /// over.
  void finish();

  worker::Worker& worker() { return worker_; }
  /// Milliseconds spent so far in the candidate's turns.
  double model_ms() const { return model_ms_; }

 private:
  struct Published {
    std::uint64_t address = 0;
    std::vector<std::int64_t> strides;
    std::uint64_t span_bytes = 0;  // from the first to the last element, inclusive
  };
  Failure failure_of(const worker::Fault& fault) const;
  std::expected<Published, Failure> published(std::size_t k, std::size_t output);
  std::expected<std::vector<std::byte>, Failure> gather(const Published& where,
                                                        const TensorSpec& spec);
  bool native() const { return candidate_.backend != problem::Backend::python; }

  worker::Worker worker_;
  const problem::Candidate& candidate_;
  const build::Result& build_;
  Reference& reference_;
  const Options& options_;
  CpuDevice& device_;
  worker::Layout layout_;
  std::uint64_t guard_secret_;
  double model_ms_ = 0;
};

}  // namespace kb::judge
