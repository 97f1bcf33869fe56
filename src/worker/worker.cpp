#include "worker/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "device/cpu/spin.h"
#include "worker/channel.h"
#include "worker/cpus.h"

namespace kb::worker {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMaxFaultText = 16u << 10;
constexpr int kSocketInside = 3;
// While a worker computes the judge sleeps; it wakes this often to see whether the process died
// without a word.
constexpr std::int64_t kWatchIntervalNs = 50'000'000;
// But the end of a bound worker's turn it awaits awake, where that is not so far that it would not
// matter: asleep it sees it 40 to 80 µs late.
constexpr milliseconds kPolled{200};
constexpr std::chrono::microseconds kNotLetRun{50};
constexpr int kPauses = 4;  // between two looks

FaultKind kind_from_name(std::string_view name) {
  if (name == "problem") return FaultKind::problem;
  if (name == "load") return FaultKind::load;
  if (name == "runtime") return FaultKind::runtime;
  if (name == "out_of_memory") return FaultKind::out_of_memory;
  if (name == "unsupported") return FaultKind::unsupported;
  return FaultKind::protocol;
}

Fault fault_of_reply(const nlohmann::json& body) {
  Fault fault{FaultKind::protocol, "the worker's reply is not of the protocol"};
  const auto error = body.find("error");
  if (error == body.end() || !error->is_object()) return fault;
  const auto kind = error->find("kind");
  const auto text = error->find("text");
  if (kind != error->end() && kind->is_string())
    fault.kind = kind_from_name(kind->get_ref<const std::string&>());
  if (text != error->end() && text->is_string())
    fault.text = text->get_ref<const std::string&>().substr(0, kMaxFaultText);
  return fault;
}

// Awaits that the word is no longer `seen`, awake. False: in vain until then, or this thread has to
// share its CPU, where one that sleeps would be let run sooner.
bool poll(const std::atomic<std::uint32_t>& word, std::uint32_t seen, Clock::time_point until) {
  for (auto last = Clock::now(); word.load(std::memory_order_acquire) == seen;) {
    for (int i = 0; i < kPauses; ++i) cpu::spin_pause();
    const auto now = Clock::now();
    if (now >= until || now - last > kNotLetRun) return false;
    last = now;
  }
  return true;
}

bool says_ok(const nlohmann::json& body) {
  const auto ok = body.find("ok");
  return ok != body.end() && ok->is_boolean() && ok->get<bool>();
}

std::expected<FileDescriptor, std::string> lock_filter_file() {
  const auto program = sandbox::no_new_process_filter();
  FileDescriptor file(::memfd_create("kernelbench-lock", MFD_CLOEXEC));
  if (!file) return std::unexpected(std::string("memfd_create failed"));
  if (::write(file.get(), program.data(), program.size()) != static_cast<ssize_t>(program.size()) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0)
    return std::unexpected(std::string("the seccomp program could not be written"));
  return file;
}

}  // namespace

std::expected<Worker, Fault> Worker::start(sandbox::Launcher& launcher, sandbox::Command command) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return std::unexpected(Fault{FaultKind::infrastructure,
                                 fmt::format("socketpair failed: {}", std::strerror(errno))});
  FileDescriptor ours(ends[0]), theirs(ends[1]);
  command.argv.insert(command.argv.end(), {"--fd", std::to_string(kSocketInside)});
  command.fds.emplace_back(theirs.get(), kSocketInside);
  auto process = launcher.start(command);
  if (!process) return std::unexpected(Fault{FaultKind::infrastructure, process.error()});
  return Worker(std::make_unique<sandbox::Process>(std::move(*process)), std::move(ours));
}

Fault Worker::describe_end() {
  const auto end = process_->wait(milliseconds(500));
  std::string text;
  FaultKind kind = FaultKind::crashed;
  if (!end) {
    text = "the process closed its control socket";
  } else if (end->out_of_memory) {
    kind = FaultKind::out_of_memory;
    text = "the process was ended by its memory limit";
  } else if (end->exited) {
    // bubblewrap reports a program that died by a signal as 128 + signal, as shells do.
    text = end->code > 128
               ? fmt::format("the process was ended by signal {} ({})", end->code - 128,
                             ::strsignal(end->code - 128))
               : fmt::format("the process exited with status {} before it had finished", end->code);
  } else {
    text =
        fmt::format("the process was ended by signal {} ({})", end->code, ::strsignal(end->code));
  }
  const std::string printed = process_->output();
  if (!printed.empty())
    text += "\n" + printed.substr(printed.size() > 4096 ? printed.size() - 4096 : 0);
  return {kind, text};
}

// Why it cannot be stopped or let go. One that lives is no fault of its model's: on a machine with
// too much to do, all threads have to be scheduled once to be stopped.
Fault Worker::describe_unruly() {
  if (process_->wait(milliseconds(5000))) return describe_end();
  return {FaultKind::infrastructure, "the worker's processes could not be stopped"};
}

std::expected<nlohmann::json, Fault> Worker::receive(milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  // The socket alone would not do: a child that a candidate forked may hold its other end open.
  pollfd entries[2] = {{socket_.get(), POLLIN, 0}, {process_->pidfd(), POLLIN, 0}};
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    if (left <= 0)
      return std::unexpected(Fault{
          FaultKind::timeout,
          fmt::format("no answer within {:.1f} s", static_cast<double>(limit.count()) / 1000)});
    const int ready = ::poll(entries, entries[1].fd >= 0 ? 2 : 1,
                             static_cast<int>(std::min<std::int64_t>(left, 1 << 30)));
    if (ready < 0 && errno != EINTR)
      return std::unexpected(Fault{FaultKind::infrastructure, "poll failed"});
    if (ready > 0 && (entries[0].revents != 0)) break;
    if (ready > 0 && (entries[1].revents & POLLIN)) return std::unexpected(describe_end());
  }
  const auto left = std::max<milliseconds>(
      milliseconds(1), std::chrono::ceil<milliseconds>(deadline - Clock::now()));
  auto frame = receive_frame(socket_.get(), kMaxFrameFromWorker, left);
  if (frame) return std::move(frame->body);
  switch (frame.error()) {
    case ChannelError::closed: return std::unexpected(describe_end());
    case ChannelError::timeout:
      return std::unexpected(Fault{FaultKind::protocol, "the worker's answer stopped half-way"});
    case ChannelError::malformed:
      return std::unexpected(
          Fault{FaultKind::protocol, "the worker sent something that is not of the protocol"});
    case ChannelError::system: break;
  }
  return std::unexpected(Fault{FaultKind::infrastructure, "reading from the worker failed"});
}

std::expected<nlohmann::json, Fault> Worker::await_hello(milliseconds limit) {
  auto body = receive(limit);
  if (!body) return body;
  if (!body->contains("hello"))
    return std::unexpected(says_ok(*body) ? Fault{FaultKind::protocol, "no hello"}
                                          : fault_of_reply(*body));
  return body;
}

std::expected<nlohmann::json, Fault> Worker::request(const nlohmann::json& body,
                                                     std::span<const int> fds, milliseconds limit) {
  auto with_fds = body;
  if (!fds.empty()) with_fds["fds"] = fds.size();
  if (auto sent = send_frame(socket_.get(), with_fds, fds, limit); !sent) {
    if (sent.error() == ChannelError::timeout)
      return std::unexpected(Fault{FaultKind::timeout, "the worker does not read its requests"});
    return std::unexpected(describe_end());
  }
  auto reply = receive(limit);
  if (reply && !says_ok(*reply)) return std::unexpected(fault_of_reply(*reply));
  return reply;
}

std::expected<void, Fault> Worker::attach(const nlohmann::json& layout_json, const Memory& data,
                                          const Memory* heap, milliseconds limit) {
  auto control = cpu::SharedMemory::create(layout_json.at("control_size").get<std::size_t>(),
                                           "kernelbench-control");
  if (!control) return std::unexpected(Fault{FaultKind::infrastructure, control.error()});
  control_ = std::move(*control);
  sequence_ = 0;
  std::vector<int> fds{control_->fd(), data.fd()};
  if (heap != nullptr) fds.push_back(heap->fd());
  auto reply = request({{"op", "attach"}, {"layout", layout_json}}, fds, limit);
  if (!reply) return std::unexpected(reply.error());
  return {};
}

std::expected<void, Fault> Worker::enter_turns(milliseconds limit, bool with_lock,
                                               nlohmann::json fields) {
  fields["op"] = "turns";
  FileDescriptor filter;
  int fd = -1;
  if (with_lock) {
    auto file = lock_filter_file();
    if (!file) return std::unexpected(Fault{FaultKind::infrastructure, file.error()});
    filter = std::move(*file);
    fd = filter.get();
  }
  auto reply =
      request(fields, with_lock ? std::span<const int>(&fd, 1) : std::span<const int>(), limit);
  if (!reply) return std::unexpected(reply.error());
  in_turns_ = true;
  if (!process_->freeze()) return std::unexpected(describe_unruly());
  return {};
}

void Worker::ring(Command command) {
  auto& bell = doorbell();
  bell.command = static_cast<std::uint32_t>(command);
  bell.go.store(++sequence_, std::memory_order_seq_cst);
  futex_wake(&bell.go);
}

std::expected<Turn, Fault> Worker::answer(milliseconds limit, bool freeze_after,
                                          const Closing& closing) {
  auto& bell = doorbell();
  const std::uint32_t sequence = sequence_;
  const auto elsewhere = std::exchange(elsewhere_, nullptr);
  bool polls = elsewhere && *elsewhere;
  if (awake_) awake_->rest();
  const auto start = Clock::now();
  if (!process_->thaw()) return std::unexpected(describe_unruly());
  const auto deadline = start + limit;
  for (;;) {
    const auto done = bell.done.load(std::memory_order_acquire);
    if (done == sequence) break;
    const auto left =
        std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      process_->freeze();
      return std::unexpected(
          Fault{FaultKind::timeout, fmt::format("a call did not finish within {:.1f} s",
                                                static_cast<double>(limit.count()) / 1000)});
    }
    if (polls)
      polls = poll(bell.done, done, std::min(deadline, start + kPolled));
    else
      futex_wait(&bell.done, done, std::min<std::int64_t>(left, kWatchIntervalNs));
    if (bell.done.load(std::memory_order_acquire) == done && process_->wait(milliseconds(0)))
      return std::unexpected(describe_end());
  }
  const auto seen = Clock::now();
  const std::uint32_t status = bell.status;  // once: the worker could change it
  const auto over = closing && status == 0 ? closing() : std::nullopt;
  if (freeze_after && !process_->freeze()) return std::unexpected(describe_unruly());
  const auto stop = over ? *over : freeze_after ? process_->frozen_at() : seen;
  if (status != 0) {
    in_turns_ = false;
    process_->thaw();
    auto error = receive(milliseconds(5000));
    return std::unexpected(error ? fault_of_reply(*error) : error.error());
  }
  return Turn{std::chrono::duration<double, std::micro>(seen - start).count(),
              std::chrono::duration<double, std::micro>(stop - start).count()};
}

std::expected<void, Fault> Worker::quiet_command(Command command, milliseconds limit) {
  ring(command);
  auto turn = answer(limit, true);
  if (!turn) return std::unexpected(turn.error());
  return {};
}

void Worker::bind_cpu(std::optional<int> to) {
  elsewhere_.reset();  // of a turn that was armed and not run
  if (!to && !bound_) return;
  const auto program = process_->program_pid();
  if (!program) return;  // its next answer says so
  if (bound_ && cpu::cpus_of(*program) != std::vector<int>{*bound_}) strayed_ = true;
  const auto cpus = to ? std::vector<int>{*to} : cpu::cpus_of(0);
  if (!cpu::bind_to_cpus(*program, cpus)) strayed_ = true;
  bound_ = to;
}

bool Worker::stays_bound() {
  const auto program = process_->program_pid();
  return program && bound_ && !strayed_ && cpu::cpus_of(*program) == std::vector<int>{*bound_};
}

std::expected<void, Fault> Worker::prepare(milliseconds limit,
                                           std::optional<std::uint32_t> rehearse) {
  auto& bell = doorbell();
  bell.num_calls = rehearse ? 1 : 0;
  bell.slot[0] = rehearse.value_or(0);
  return quiet_command(Command::prepare, limit);
}

void Worker::arm(std::span<const Call> calls, bool reseed) {
  auto& bell = doorbell();
  bell.num_calls = static_cast<std::uint32_t>(calls.size());
  bell.reseed = reseed ? 1 : 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    bell.slot[i] = calls[i].slot;
    bell.call_seed[i] = calls[i].call_seed;
  }
  ring(Command::run);
  elsewhere_.reset();  // of a turn that is armed again: before this thread's CPUs are asked for
  if (!bound_ || !may_spin()) return;
  auto others = cpu::cpus_of(0);
  std::erase(others, *bound_);  // who is bound there cannot make way
  elsewhere_ = std::make_unique<cpu::StayOn>(others);
  if (!awake_) awake_ = AwakeCpu::start();
  if (awake_) awake_->keep(*bound_);
}

std::expected<Turn, Fault> Worker::run(milliseconds limit, const Closing& closing) {
  return answer(limit, true, closing);
}

std::expected<void, Fault> Worker::leave_turns(milliseconds limit) {
  bind_cpu(std::nullopt);
  ring(Command::leave);
  auto turn = answer(limit, false);
  if (!turn) return std::unexpected(turn.error());
  in_turns_ = false;
  auto reply = receive(limit);
  if (!reply) return std::unexpected(reply.error());
  if (!says_ok(*reply)) return std::unexpected(fault_of_reply(*reply));
  return {};
}

std::expected<std::vector<double>, Fault> Worker::time(const TimeRequest& asked,
                                                       milliseconds limit) {
  if (in_turns_) {
    if (auto left = leave_turns(limit); !left) return std::unexpected(left.error());
  } else if (!resume()) {
    return std::unexpected(describe_end());
  }
  const auto reply = request(to_json(asked), {}, limit);
  if (!reply) return std::unexpected(reply.error());
  auto times = parse_times(*reply, asked.samples());
  if (!times) return std::unexpected(Fault{FaultKind::protocol, times.error()});
  if (!pause()) return std::unexpected(describe_unruly());
  return std::move(*times);
}

}  // namespace kb::worker
