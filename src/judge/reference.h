// The reference side of an evaluation: one problem, loaded in the reference worker, with everything
// that is known of it before a candidate exists. Used for all candidates of the problem.
//
// Its data memory holds the masters (the inputs of each slot), the expected outputs and the float64
// truth. No candidate has a handle to it.
#pragma once

#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/cpu/affinity.h"
#include "judge/cpu_draw.h"
#include "judge/device.h"
#include "judge/options.h"
#include "judge/result.h"
#include "judge/turn.h"
#include "measure/speedup.h"
#include "problem/problem.h"
#include "worker/layout.h"
#include "worker/worker.h"

namespace kb::judge {

/// Public: constructing a model under another seed would be another problem. Unrelated to the seeds
/// of inputs.
inline constexpr std::uint64_t kWeightSeed = 42;

class Reference {
 public:
  /// Both workers have said hello. `oracle` draws inputs and computes expected outputs. `timed` is
  /// the problem's Model as a candidate: loaded, filled and stopped as one, and it does nothing but
  /// the turns. (A process that has just run the model is warm, and would look 2 % faster than the
  /// same code in a candidate's; one that has examined the problem, 1 to 4 % slower.) Loads the
  /// problem, times it alone, compares it with the truth, and plans the turns. FaultKind::problem:
  /// the file is at fault (the text is one sentence).
  static std::expected<std::unique_ptr<Reference>, worker::Fault> load(
      worker::Worker oracle, worker::Worker timed, const problem::Problem& problem,
      const Options& options, Device& device);

  const worker::ProblemSpec& spec() const { return spec_; }
  const problem::Problem& problem() const { return problem_; }
  const measure::TurnPlan& plan() const { return plan_; }
  /// One an output.
  std::span<const Tolerances> tolerances() const { return tolerances_; }
  /// False: there is no float64 truth to hold answers against (the model does not run in float64,
  /// or its answers there are of another kind: state that is carried along, random numbers that
  /// depend on the type).
  bool has_truth() const { return truth_possible_; }
  /// Null-stub turns of a torch worker with this problem's inputs and outputs.
  const std::vector<measure::StubTurn>& stub_turns() const { return stub_turns_; }
  double call_us() const { return call_us_; }
  /// Solo turns of `calls` calls, taken now if they have not been. A candidate that exists must be
  /// frozen, but better does not exist.
  std::expected<std::span<const measure::Solo>, worker::Fault> solo(int calls);
  /// The same, but taken anew, in the place of what was known: for when the machine itself may have
  /// changed.
  std::expected<std::span<const measure::Solo>, worker::Fault> solo_again(int calls);
  /// state_dict values in the order of spec().params; a private copy in device memory.
  std::span<const std::span<std::byte>> params() const { return params_; }
  /// The relative norm error against the truth of the reference with TF32 and the like turned off,
  /// the worst of a few trials; 0 without truth.
  double strict_error() const { return strict_error_; }

  /// Draws fresh inputs into the slots, one seed each. Thaws the worker and leaves it serving.
  std::expected<void, worker::Fault> draw(std::span<const worker::Call> calls,
                                          std::span<const std::uint64_t> seeds);
  /// Computes the expected outputs of the calls' slots.
  std::expected<void, worker::Fault> expect(std::span<const worker::Call> calls);
  /// Computes the float64 truth of slot 0. False: not possible for this model.
  std::expected<bool, worker::Fault> truth(worker::Call call);
  /// Stops the oracle, whose threads may still spin after their work. Before any timed turn, the
  /// candidate's too; prepare_turn() does it by itself.
  void pause() { worker_.pause(); }
  /// A timed turn takes three steps; frozen after each. arm_turn() returns how often something that
  /// is not ours ran on the device, as judge::arm_turn does.
  std::expected<void, worker::Fault> prepare_turn(std::optional<int> cpu);
  int arm_turn(std::span<const worker::Call> calls);
  std::expected<worker::Turn, worker::Fault> turn();
  /// Are torch workers to rehearse a call before a turn? Some milliseconds lie between two turns of
  /// a worker, on large inputs 30; the CPU forgets a model's code meanwhile, and the first launch
  /// would come 0.1 ms late, and not by the same in two processes. Not on a CPU, whose caches are
  /// flushed; nor where calls are long, or leave other inputs behind than they found.
  bool rehearses() const;
  /// The CPU for both turns of a pair, or for a turn alone: see CpuDraw. None where the CPU is the
  /// device.
  std::optional<int> draw_cpu() { return cpus_.draw(secret_seed()); }
  /// As Worker::stays_bound(), of the worker that is timed.
  bool stays_bound() { return timed_.stays_bound(); }
  /// How many turns of its own, taken before there was a candidate, were disturbed.
  int disturbances() const { return disturbances_; }
  /// The same of turns alone that were taken since, beside a candidate or its remains; counted from
  /// the last call of this on.
  int take_late_disturbances() { return std::exchange(late_disturbances_, 0); }
  /// Turns alone that a candidate has disturbed say nothing to the next one.
  void forget_solo(int calls) { solo_.erase(calls); }
  /// The times that the timed worker reports of calls on these slots; frozen afterwards.
  std::expected<std::vector<double>, worker::Fault> time(std::span<const worker::Call> calls,
                                                         const worker::TimeRequest& request);

  std::span<std::byte> master(std::uint32_t slot, std::size_t tensor);  ///< of the tensor inputs
  std::span<const std::byte> expected(std::uint32_t slot, std::size_t output);
  std::span<const std::byte> truth_of(std::size_t output);
  /// The expected outputs of slot 0 against its truth; `output` is a floating one. Error: the
  /// device failed.
  std::expected<Comparison, worker::Fault> error_of(std::size_t output, const Tolerance& tolerance);
  /// Copies the inputs of the calls' slots to where a worker with this layout and memory finds
  /// them.
  void copy_masters(std::span<const worker::Call> calls, const worker::Layout& layout,
                    const Memory& to);
  /// Milliseconds spent so far in drawing inputs, and in running the model (expected outputs,
  /// truth, turns).
  double inputs_ms() const { return inputs_ms_; }
  double model_ms() const { return model_ms_; }
  /// Where the time of load() went.
  const std::map<std::string, double>& load_phases_ms() const { return load_phases_ms_; }

 private:
  Reference(worker::Worker oracle, worker::Worker timed, problem::Problem problem,
            const Options& options, Device& device)
      : worker_(std::move(oracle)),
        timed_(std::move(timed)),
        problem_(std::move(problem)),
        options_(options),
        device_(device),
        cpus_(device.ends_turns() ? cpu::cpus_of(0) : std::vector<int>()) {}

  std::expected<void, worker::Fault> load_problem();
  std::expected<void, worker::Fault> attach(unsigned slots);
  std::expected<void, worker::Fault> attach_planned();
  std::expected<void, worker::Fault> export_params();
  std::expected<void, worker::Fault> load_timed();
  std::expected<double, worker::Fault> rough_wall_us(int calls_per_turn);
  std::expected<void, worker::Fault> measure_alone();
  std::expected<void, worker::Fault> measure_overhead(int calls);
  std::expected<void, worker::Fault> measure_error();
  std::expected<nlohmann::json, worker::Fault> ask(nlohmann::json body);
  std::expected<void, worker::Fault> expect(std::span<const worker::Call> calls, const char* mode);
  // The memory traffic that comes before a turn in a pair, so that a turn alone finds caches and
  // address translation as cold: 4 % of a call on a GPU where inputs take gigabytes.
  void traffic_of_a_pair(std::span<const worker::Call> calls);
  std::expected<worker::Turn, worker::Fault> turn_alone(std::span<const worker::Call> calls);

  worker::Worker worker_;  // the oracle; stopped while anything is timed
  worker::Worker timed_;
  std::unique_ptr<Memory> timed_data_;
  worker::Layout timed_layout_;
  problem::Problem problem_;
  Options options_;
  Device& device_;
  CpuDraw cpus_;
  worker::ProblemSpec spec_;
  worker::Layout layout_;
  std::unique_ptr<Memory> data_;
  std::unique_ptr<Memory> params_memory_;
  std::vector<std::span<std::byte>> params_;
  measure::TurnPlan plan_;
  std::vector<measure::StubTurn> stub_turns_;
  std::map<int, std::vector<measure::Solo>> solo_;
  std::vector<Tolerances> tolerances_;
  double call_us_ = 0;                      // 0: not known yet
  std::optional<std::uint32_t> last_slot_;  // of the last timed turn; its inputs are still there
  double inputs_ms_ = 0, model_ms_ = 0;
  std::map<std::string, double> load_phases_ms_;
  double strict_error_ = 0;
  bool truth_possible_ = true;
  bool turns_of_stub_ = false;
  int disturbances_ = 0, late_disturbances_ = 0;
  bool loaded_ = false;
};

/// The fields that every request to load a model has: how the problem is to be taken, and where.
nlohmann::json load_request(const char* op, const Options& options);

/// The public rule's tolerance for a precision: 1e-4 (fp32) or 1e-2.
double public_tolerance(const std::string& precision);

/// `count` calls on distinct slots of `slots`, in random order, each with a fresh seed for the
/// model's generator.
std::vector<worker::Call> random_calls(int count, unsigned slots);

/// The largest number of threads that a model may use.
unsigned thread_count(const Options& options);

}  // namespace kb::judge
