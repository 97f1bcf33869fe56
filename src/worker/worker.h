// The judge's handle on one worker process, whichever implementation and role it has.
//
//   auto worker = Worker::start(launcher, command, ...);   // returns at once
//   worker->await_hello(30s);
//   worker->request({{"op", "attach"}, ...}, fds, 10s);
//   worker->enter_turns(...);                       // now frozen
//   worker->prepare(5s); ...                        // frozen before and after, as the next two
//   worker->arm(calls, true); ... auto turn = worker->run(5s);
//   worker->leave_turns(5s);                        // serves requests again
//
// A worker in turn mode is frozen whenever no command of the judge runs, so that nothing of it (no
// thread, no child) can use the device, look at the inputs, or prepare an answer outside the clock.
#pragma once

#include <chrono>
#include <expected>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/cpu/affinity.h"
#include "device/cpu/shared_memory.h"
#include "device/device.h"
#include "sandbox/sandbox.h"
#include "worker/awake_cpu.h"
#include "worker/doorbell.h"
#include "worker/fault.h"
#include "worker/file_descriptor.h"
#include "worker/times.h"

namespace kb::worker {

using std::chrono::milliseconds;

/// One call of a turn.
struct Call {
  std::uint32_t slot = 0;
  std::uint64_t call_seed = 0;
};

struct Turn {
  double done_us = 0;  ///< from the thaw until `done` was seen; explains, is never credited
  double wall_us = 0;  ///< from just before the thaw until the turn was over: see Closing
};

/// Called the moment `done` is seen, before the worker is stopped. Returns when the turn was over,
/// or nothing where that is the stop of the worker's whole process tree.
using Closing = std::function<std::optional<std::chrono::steady_clock::time_point>()>;

class Worker {
 public:
  /// `command.argv` gets `--fd 3` appended, and the control socket as descriptor 3.
  static std::expected<Worker, Fault> start(sandbox::Launcher& launcher, sandbox::Command command);
  Worker(Worker&&) noexcept = default;
  Worker& operator=(Worker&&) noexcept = default;

  std::expected<nlohmann::json, Fault> await_hello(milliseconds limit);
  /// Sends one request and waits for its reply. An `ok: false` reply is a Fault of the kind it
  /// names.
  std::expected<nlohmann::json, Fault> request(const nlohmann::json& body, std::span<const int> fds,
                                               milliseconds limit);
  /// Makes the control memory that `layout_json` describes, and attaches it with `data` and, for a
  /// torch candidate on a GPU, `heap` (or null). The worker may use them until it ends: they must
  /// not be given to another one before that.
  std::expected<void, Fault> attach(const nlohmann::json& layout_json, const Memory& data,
                                    const Memory* heap, milliseconds limit);
  const Memory& control() const { return *control_; }

  /// Enters turn mode and freezes. `fields` are added to the request.
  std::expected<void, Fault> enter_turns(milliseconds limit, bool with_lock,
                                         nlohmann::json fields = nlohmann::json::object());
  /// Before a turn is prepared or armed: its main thread runs on that CPU from here on; none: on
  /// all that this process has. Threads that it starts while it is bound are bound with it, so it
  /// should have started what it needs before. Where two CPUs can be had, that one is kept awake
  /// from arm() to run(), and the calling thread, on another, awaits the turn's end awake.
  void bind_cpu(std::optional<int> to);
  /// Has its main thread been found where it was bound each time that was looked at, now for the
  /// last time? False while it is not bound. (What other threads of it do is not looked at.)
  bool stays_bound();
  /// Between turns, untimed. A torch worker then makes a call on what `rehearse`, a slot, has from
  /// earlier; nobody looks at what comes out.
  std::expected<void, Fault> prepare(milliseconds limit,
                                     std::optional<std::uint32_t> rehearse = std::nullopt);
  /// No new processes from here on.
  std::expected<void, Fault> lock(milliseconds limit) {
    return quiet_command(Command::lock, limit);
  }
  /// Rings for a turn of `calls` (1 … kMaxCalls) in order. The worker is stopped, and answers when
  /// run() lets it go: nothing that anyone but the kernel's scheduler could see happens then.
  void arm(std::span<const Call> calls, bool reseed);
  /// The timed turn that was armed.
  std::expected<Turn, Fault> run(milliseconds limit, const Closing& closing = {});
  /// Thaws and returns to serving requests.
  std::expected<void, Fault> leave_turns(milliseconds limit);

  /// The times that the worker itself reports, in microseconds. Not in turn mode afterwards, and
  /// frozen.
  std::expected<std::vector<double>, Fault> time(const TimeRequest& request, milliseconds limit);

  bool in_turns() const { return in_turns_; }
  sandbox::Process& process() { return *process_; }
  /// For workers that wait in a pool: stop and continue outside turn mode.
  bool pause() { return process_->freeze(); }
  bool resume() { return process_->thaw(); }

  /// A sentence on how the process ended, and the end of what it printed.
  Fault describe_end();

 private:
  Worker(std::unique_ptr<sandbox::Process> process, FileDescriptor socket)
      : process_(std::move(process)), socket_(std::move(socket)) {}
  std::expected<nlohmann::json, Fault> receive(milliseconds limit);
  std::expected<void, Fault> quiet_command(Command command, milliseconds limit);
  Fault describe_unruly();
  // Rings the doorbell with the command words in place. The worker is stopped.
  void ring(Command command);
  // Lets it go, and waits for the answer and the freeze.
  std::expected<Turn, Fault> answer(milliseconds limit, bool freeze_after,
                                    const Closing& closing = {});
  Doorbell& doorbell() { return *reinterpret_cast<Doorbell*>(control_->bytes().data()); }

  std::unique_ptr<sandbox::Process> process_;
  FileDescriptor socket_;
  std::unique_ptr<cpu::SharedMemory> control_;
  std::uint32_t sequence_ = 0;
  std::optional<int> bound_;  // to this CPU
  std::unique_ptr<AwakeCpu> awake_;
  std::unique_ptr<cpu::StayOn> elsewhere_;  // from arm() to run(): the thread that called it
  bool strayed_ = false;
  bool in_turns_ = false;
};

}  // namespace kb::worker
