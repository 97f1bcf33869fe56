// The process tree of a sandbox, as the host sees it:
//
//   kernelbench                      its Attendant thread forks, so that the parent-death signal
//   means the judge's
//    └─ bwrap      "top"             monitor: outside the namespaces, our child, exits with the
//    program's status
//        └─ bwrap  "init"            process 1 of the pid namespace: dies → the kernel kills all
//        below
//            └─ the program          process 2
//                └─ …
//
// A plain process has neither monitor nor init: top is the program. All of it, monitor included, is
// in one control group where one can be made.
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>

#include "sandbox/attendant.h"
#include "sandbox/bubblewrap.h"
#include "sandbox/cgroup.h"
#include "sandbox/freezer.h"
#include "sandbox/process_tree.h"
#include "sandbox/seccomp_filter.h"
#include "sandbox/spawn.h"

namespace kb::sandbox {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

/// By descriptor, so that a number that has been given to another process cannot be hit.
void send_signal(const UniqueFd& pidfd, int signal) {
  if (pidfd) (void)::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
}

/// True once the process has ended.
bool wait_for_end(const UniqueFd& pidfd, milliseconds limit) {
  const auto end = Clock::now() + limit;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
    pollfd entry{pidfd.get(), POLLIN, 0};
    const int count =
        ::poll(&entry, 1, static_cast<int>(std::clamp<long>(left.count(), 0, 1'000'000)));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
    if (Clock::now() >= end) return false;
  }
}

/// A file in memory that holds `content`, opened anew so that its reading position is the start.
UniqueFd memory_file(const char* name, std::string_view content) {
  const UniqueFd file(::memfd_create(name, MFD_CLOEXEC));
  if (!file ||
      ::write(file.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
    return {};
  }
  return UniqueFd(
      ::open(fmt::format("/proc/self/fd/{}", file.get()).c_str(), O_RDONLY | O_CLOEXEC));
}

struct Pipe {
  UniqueFd reading, writing;
};

std::expected<Pipe, std::string> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return std::unexpected(fmt::format("no pipe for a sandbox: {}", std::strerror(errno)));
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::string last_line(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const std::size_t at = text.rfind('\n');
  return std::string(at == std::string_view::npos ? text : text.substr(at + 1));
}

FreezerChoice freezer_choice() {
  const char* const name = std::getenv("KERNELBENCH_FREEZER");
  const std::string_view choice = name == nullptr ? "" : name;
  if (choice == "cgroup2") return FreezerChoice::cgroup2;
  if (choice == "cgroup1") return FreezerChoice::cgroup1;
  if (choice == "signal") return FreezerChoice::signal;
  return FreezerChoice::fastest;
}

std::vector<std::pair<int, rlim_t>> rlimits(const Limits& limits, const Cgroup* cgroup) {
  std::vector<std::pair<int, rlim_t>> result = {
      {RLIMIT_CORE, 0},
      {RLIMIT_SIGPENDING, 64},  // also the number of POSIX timers
      {RLIMIT_FSIZE, limits.max_file_bytes},
      {RLIMIT_NOFILE, limits.max_open_files},
  };
  // Per process, and blind to shared memory: better than nothing.
  if (cgroup == nullptr || !cgroup->limits_memory()) {
    result.emplace_back(RLIMIT_DATA, limits.memory_bytes);
  }
  return result;
}

}  // namespace

struct Process::Impl {
  std::shared_ptr<Attendant> attendant;
  bool sandboxed = false;
  pid_t top = -1;
  UniqueFd top_pidfd;
  pid_t init = -1;
  UniqueFd init_pidfd;
  pid_t program = -1;
  std::unique_ptr<Cgroup> cgroup;
  std::unique_ptr<Freezer> freezer;
  bool frozen = false;
  std::chrono::steady_clock::time_point frozen_at;
  bool killed = false;
  std::optional<Exit> exit;
  std::shared_ptr<OutputBuffer> output;
  std::vector<std::uint64_t> attended;
  UniqueFd status;  ///< open to the end: bubblewrap writes to it when the program ends

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    kill();
    for (std::uint64_t number : attended) attendant->forget(number);
  }

  /// Everything that runs for this command, bubblewrap's monitor left out, the program first.
  std::vector<pid_t> all_pids() const {
    std::vector<pid_t> found;
    const auto add = [&](pid_t pid) {
      if (pid > 0 && std::ranges::find(found, pid) == found.end()) found.push_back(pid);
    };
    if (killed) return found;
    if (sandboxed) {
      if (init < 0) return found;
      for (pid_t pid : descendants_of(init)) add(pid);
      if (const auto it = std::ranges::find(found, program); it != found.end()) {
        std::rotate(found.begin(), it, it + 1);
      }
      if (is_alive(init)) add(init);
      return found;
    }
    add(top);
    for (pid_t pid : descendants_of(top)) add(pid);
    for (pid_t pid : cgroup ? cgroup->processes() : members_of_session(top)) add(pid);
    return found;
  }

  void make_freezer(FreezerChoice choice) {
    const auto folder = [&](bool version2) {
      return cgroup ? cgroup->freezer_folder(version2) : -1;
    };
    if (choice != FreezerChoice::signal && choice != FreezerChoice::cgroup1 && folder(true) >= 0) {
      freezer = cgroup2_freezer(folder(true));
    } else if (choice != FreezerChoice::signal && folder(false) >= 0) {
      freezer = cgroup1_freezer(folder(false));
    } else {
      freezer = signal_freezer([this] {
        std::vector<pid_t> pids = all_pids();
        std::erase_if(pids, [](pid_t pid) { return !is_alive(pid); });
        return pids;
      });
    }
  }

  /// Notes the exit status if top has ended; true when it has. Top stays a zombie until kill(),
  /// which keeps its number, by which its session is known, from being given to another process.
  bool note_exit() {
    if (exit) return true;
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(top), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
      if (errno == EINTR) return false;
      exit = Exit{false, SIGKILL, false};  // somebody else in the judge took it: no way to tell
      return true;
    }
    if (info.si_pid == 0) return false;
    Exit result;
    result.exited = info.si_code == CLD_EXITED;
    result.code = info.si_status;
    // Bubblewrap passes a signal on as 128 + its number. A program may exit with such a number
    // itself; shells do, and mean the same by it.
    if (sandboxed && result.exited && result.code > 128 && result.code <= 128 + SIGRTMAX) {
      result = {false, result.code - 128, false};
    }
    result.out_of_memory = cgroup && cgroup->out_of_memory();
    exit = result;
    return true;
  }

  void kill() {
    if (killed || top < 0) return;
    constexpr milliseconds patience(2000);
    // What is frozen gets its SIGKILL before it is thawed, and so does not run again.
    std::vector<pid_t> pids;
    if (frozen || (!sandboxed && !cgroup)) pids = all_pids();
    if (sandboxed && !init_pidfd && !exit)
      pids = descendants_of(top);  // a start that failed half-way
    for (pid_t pid : pids) {
      if (pid != top) ::kill(pid, SIGKILL);
    }
    send_signal(init_pidfd, SIGKILL);
    if ((!sandboxed || !init_pidfd) && !exit) send_signal(top_pidfd, SIGKILL);
    if (frozen && cgroup) (void)freezer->thaw();  // stopped by a signal, it needs no other
    frozen = false;

    // The monitor ends by itself once it has reaped init. Were it killed first, init would go to
    // whoever adopts orphans, and stay a zombie if that were the judge.
    if (!exit && !wait_for_end(top_pidfd, patience)) {
      send_signal(top_pidfd, SIGKILL);
      if (cgroup) (void)cgroup->kill_all(patience);
      (void)wait_for_end(top_pidfd, patience);
    }
    (void)note_exit();
    if (init_pidfd) {
      (void)wait_for_end(init_pidfd, patience);
      (void)::waitpid(init, nullptr, WNOHANG);  // ours only if it was orphaned and we adopt orphans
    }
    if (!sandboxed && !cgroup) {
      for (int round = 0; round < 100; ++round) {
        std::vector<pid_t> left = members_of_session(top);
        std::erase_if(left, [](pid_t pid) { return !is_alive(pid); });
        if (left.empty()) break;
        for (pid_t pid : left) ::kill(pid, SIGKILL);
        std::this_thread::sleep_for(milliseconds(1));
      }
    }
    (void)::waitpid(top, nullptr, WNOHANG);
    killed = true;
    freezer.reset();
    cgroup.reset();
  }
};

Process::Process(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Process::~Process() = default;
Process::Process(Process&&) noexcept = default;
Process& Process::operator=(Process&&) noexcept = default;

bool Process::sandboxed() const {
  return impl_->sandboxed;
}

std::expected<pid_t, std::string> Process::program_pid() const {
  if (impl_->program < 0 || impl_->exit || !is_alive(impl_->program)) {
    return std::unexpected(std::string("the program has already ended"));
  }
  return impl_->program;
}

std::vector<pid_t> Process::pids() const {
  std::vector<pid_t> pids = impl_->all_pids();
  std::erase_if(pids, [&](pid_t pid) { return pid == impl_->init || !is_alive(pid); });
  return pids;
}

bool Process::freeze() {
  Impl& p = *impl_;
  if (p.frozen) return true;
  if (p.exit || p.killed || !p.freezer) return false;
  if (!p.freezer->freeze(milliseconds(10'000))) return false;
  p.frozen_at = std::chrono::steady_clock::now();
  if (!is_alive(p.program)) {
    (void)p.freezer->thaw();
    return false;
  }
  p.frozen = true;
  return true;
}

std::chrono::steady_clock::time_point Process::frozen_at() const {
  return impl_->frozen_at;
}

bool Process::thaw() {
  Impl& p = *impl_;
  if (!p.frozen) return !p.exit && !p.killed;
  p.frozen = false;
  return p.freezer->thaw();
}

bool Process::frozen() const {
  return impl_->frozen;
}

const char* Process::freezer_name() const {
  return impl_->freezer ? impl_->freezer->name() : "signal";
}

void Process::kill() {
  impl_->kill();
}

std::optional<Exit> Process::wait(milliseconds limit) {
  if (!impl_->exit && wait_for_end(impl_->top_pidfd, limit)) (void)impl_->note_exit();
  return impl_->exit;
}

int Process::pidfd() const {
  return impl_->top_pidfd.get();
}

std::string Process::output() const {
  return impl_->output->text();
}

struct Launcher::Impl {
  explicit Impl(Mode wanted) : mode(wanted) {}

  const Mode mode;
  const FreezerChoice freezer = freezer_choice();
  const std::shared_ptr<Attendant> attendant = std::make_shared<Attendant>();
  const Cgroups cgroups = Cgroups::find(freezer);
  std::once_flag probed, warned;
  std::string unavailable;
  Bubblewrap bubblewrap;
  std::string filter;

  void probe();
  std::expected<std::string, std::string> find_and_try();
  std::expected<Process, std::string> start_sandboxed(const Command& command);
  std::expected<Process, std::string> start_plain(const Command& command);
  std::expected<std::unique_ptr<Process::Impl>, std::string> begin(
      const Command& command, SpawnRequest& request, std::uint32_t extra_processes,
      const std::vector<std::pair<int, int>>& more_fds);
};

namespace {

std::expected<void, std::string> check(const Command& command) {
  if (command.argv.empty() || !command.argv[0].starts_with('/')) {
    return std::unexpected(
        std::string("a command for the sandbox must start with an absolute path"));
  }
  std::set<int> numbers;
  for (const auto& [ours, inside] : command.fds) {
    if (inside < 3 || !numbers.insert(inside).second) {
      return std::unexpected(
          fmt::format("descriptor number {} inside is below 3 or given twice", inside));
    }
  }
  return {};
}

/// The number after `key` in bubblewrap's status, a series of small JSON objects; -1 when not
/// there.
int status_number(std::string_view status, std::string_view key) {
  const std::size_t at = status.find(key);
  if (at == std::string_view::npos) return -1;
  const std::size_t digits = status.find_first_of("0123456789", at + key.size());
  if (digits == std::string_view::npos) return -1;
  int number = -1;
  std::from_chars(status.data() + digits, status.data() + status.size(), number);
  return number;
}

/// Appends what the status pipe holds. False when it is at its end.
bool read_status(const UniqueFd& pipe, std::string& status) {
  std::array<char, 512> buffer;
  const ssize_t got = ::read(pipe.get(), buffer.data(), buffer.size());
  if (got > 0) status.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/// Threads of `pid` and everything below it.
std::uint32_t tasks_from(pid_t pid) {
  std::uint32_t count = thread_count(pid);
  for (pid_t each : descendants_of(pid)) count += thread_count(each);
  return count;
}

/// True when `pid` runs another file than `path`.
bool has_execed(pid_t pid, const struct stat& from) {
  struct stat now {};
  return ::stat(fmt::format("/proc/{}/exe", pid).c_str(), &now) == 0 &&
         (now.st_ino != from.st_ino || now.st_dev != from.st_dev);
}

}  // namespace

/// What both kinds of start share: the group, the output pipe, the limits, the fork.
std::expected<std::unique_ptr<Process::Impl>, std::string> Launcher::Impl::begin(
    const Command& command, SpawnRequest& request, std::uint32_t extra_processes,
    const std::vector<std::pair<int, int>>& more_fds) {
  auto process = std::make_unique<Process::Impl>();
  process->attendant = attendant;
  process->cgroup =
      cgroups.make(command.limits.memory_bytes, command.limits.max_processes + extra_processes);
  auto pipe = make_pipe();
  if (!pipe) return std::unexpected(pipe.error());
  process->output = std::make_shared<OutputBuffer>(std::move(pipe->reading));

  request.limits = rlimits(command.limits, process->cgroup.get());
  request.fds = command.fds;
  request.fds.insert(request.fds.end(), more_fds.begin(), more_fds.end());
  request.fds.emplace_back(pipe->writing.get(), 1);
  request.fds.emplace_back(pipe->writing.get(), 2);
  if (process->cgroup) {
    request.cgroup2_folder = process->cgroup->version2_folder();
    request.cgroup1_tasks = process->cgroup->version1_tasks();
  }
  auto spawned = attendant->spawn(request);
  if (!spawned) return std::unexpected(spawned.error());
  process->top = spawned->pid;
  process->top_pidfd = std::move(spawned->pidfd);
  process->attended.push_back(attendant->attend(process->output));
  return process;
}

std::expected<Process, std::string> Launcher::Impl::start_plain(const Command& command) {
  SpawnRequest request;
  request.path = command.argv[0];
  request.argv = command.argv;
  for (const auto& [name, value] : command.environment) {
    request.environment.push_back(fmt::format("{}={}", name, value));
  }
  request.working_directory = command.working_directory;
  auto begun = begin(command, request, 0, {});
  if (!begun) return std::unexpected(begun.error());
  Process::Impl& process = **begun;
  process.program = process.top;
  process.make_freezer(freezer);
  if (!process.cgroup || !process.cgroup->limits_processes()) {
    process.attended.push_back(
        attendant->watch([top = process.top, max = command.limits.max_processes] {
          if (!is_alive(top) || tasks_from(top) <= max) return;
          std::vector<pid_t> pids = members_of_session(top);
          const std::vector<pid_t> below = descendants_of(top);
          pids.insert(pids.end(), below.begin(), below.end());
          for (pid_t pid : pids) ::kill(pid, SIGKILL);
        }));
  }
  return Process(std::move(*begun));
}

std::expected<Process, std::string> Launcher::Impl::start_sandboxed(const Command& command) {
  // Bubblewrap's own descriptors get numbers above those of the command.
  int number = 3;
  for (const auto& [ours, inside] : command.fds) number = std::max(number, inside + 1);
  std::vector<UniqueFd> open;
  std::vector<std::pair<int, int>> more_fds;
  const auto give = [&](UniqueFd fd) {
    more_fds.emplace_back(fd.get(), number);
    open.push_back(std::move(fd));
    return number++;
  };
  auto status_pipe = make_pipe();
  auto block_pipe = make_pipe();
  if (!status_pipe || !block_pipe) return std::unexpected(std::string("no pipe for a sandbox"));
  BubblewrapFds fds;
  fds.seccomp = give(memory_file("seccomp", filter));
  fds.passwd = give(memory_file("passwd", sandbox_passwd));
  fds.group = give(memory_file("group", sandbox_group));
  fds.hosts = give(memory_file("hosts", sandbox_hosts));
  fds.status = give(std::move(status_pipe->writing));
  fds.block = give(std::move(block_pipe->reading));
  for (const UniqueFd& fd : open) {
    if (!fd) {
      return std::unexpected(
          fmt::format("no descriptors left for a sandbox: {}", std::strerror(errno)));
    }
  }
  auto arguments = bubblewrap_arguments(bubblewrap, command, fds);
  if (!arguments) return std::unexpected(arguments.error());
  SpawnRequest request;
  request.path = bubblewrap.path;
  request.argv = std::move(*arguments);
  request.read_only_dev = true;
  // Two more for bubblewrap's own two processes.
  auto begun = begin(command, request, 2, more_fds);
  if (!begun) return std::unexpected(begun.error());
  Process::Impl& process = **begun;
  process.sandboxed = true;
  process.status = std::move(status_pipe->reading);
  (void)::fcntl(process.status.get(), F_SETFL, O_NONBLOCK);
  open.clear();

  // From here on a failure is bubblewrap's, which says why on its standard error.
  const auto failed = [&](std::string_view otherwise) {
    std::string line = last_line(process.output->text());
    if (line.empty()) line = otherwise;
    return std::unexpected(fmt::format("bubblewrap could not start {}: {}", command.argv[0], line));
  };
  const auto deadline = Clock::now() + std::chrono::seconds(20);
  std::string status;
  while (status_number(status, "\"child-pid\"") < 0 || status.find('\n') == std::string::npos) {
    std::array<pollfd, 2> entries{pollfd{process.status.get(), POLLIN, 0},
                                  pollfd{process.top_pidfd.get(), POLLIN, 0}};
    (void)::poll(entries.data(), entries.size(), 100);
    const bool open_still = read_status(process.status, status);
    if (!open_still || Clock::now() > deadline) {
      (void)wait_for_end(process.top_pidfd, milliseconds(1000));
      return failed("it ended without a word");
    }
  }
  const pid_t init = status_number(status, "\"child-pid\"");
  process.init_pidfd = open_pidfd(init);
  if (parent_of(init) == process.top) {
    process.init = init;
  } else {
    process.init_pidfd.reset();  // it has ended, and the number may be another's by now
  }

  const bool counted = process.cgroup && process.cgroup->limits_processes();
  if (!counted && process.init > 0) {
    // For an ordinary user this limit holds within the user namespace (it must be set after the
    // namespace exists: outside, all processes of the user count). Root is exempt from it.
    const rlimit limit{command.limits.max_processes + 1, command.limits.max_processes + 1};
    (void)::prlimit(process.init, RLIMIT_NPROC, &limit, nullptr);
    process.attended.push_back(
        attendant->watch([&init_pidfd = process.init_pidfd, root = process.init,
                          max = command.limits.max_processes] {
          if (tasks_from(root) > max + 1) send_signal(init_pidfd, SIGKILL);
        }));
  }
  (void)!::write(block_pipe->writing.get(), "g", 1);
  block_pipe->writing.reset();

  // The program has started when process 2 has replaced itself. It may also have ended by then.
  struct stat bubblewrap_file {};
  (void)::stat(bubblewrap.path.c_str(), &bubblewrap_file);
  for (;;) {
    if (process.program < 0 && process.init > 0) {
      const std::vector<pid_t> children = children_of(process.init);
      if (!children.empty()) process.program = *std::ranges::min_element(children);
    }
    if (process.program > 0 && has_execed(process.program, bubblewrap_file)) break;
    if (wait_for_end(process.top_pidfd, milliseconds(0))) {
      while (status_number(status, "\"exit-code\"") < 0 && read_status(process.status, status) &&
             Clock::now() < deadline) {
      }
      if (status_number(status, "\"exit-code\"") < 0) return failed("it ended without a word");
      break;
    }
    if (Clock::now() > deadline) return failed("it took too long");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  process.make_freezer(freezer);
  return Process(std::move(*begun));
}

std::expected<std::string, std::string> Launcher::Impl::find_and_try() {
  auto path = find_bubblewrap(std::getenv("PATH"));
  if (!path) return path;
  bubblewrap.path = *path;

  auto program = sandbox_filter();
  if (!program) return std::unexpected(program.error());
  filter.assign(reinterpret_cast<const char*>(program->data()), program->size());

  Command help;
  help.argv = {bubblewrap.path, "--help"};
  help.working_directory = "/";
  auto asked = start_plain(help);
  if (!asked) return std::unexpected(asked.error());
  (void)asked->wait(milliseconds(5000));
  bubblewrap.has_size = asked->output().find("--size") != std::string::npos;

  Command trivial;
  trivial.argv = {::access("/usr/bin/true", X_OK) == 0 ? "/usr/bin/true" : "/bin/true"};
  std::string line;
  if (auto started = start_sandboxed(trivial); !started) {
    line = started.error();
  } else if (const auto exit = started->wait(milliseconds(10'000));
             !exit || !exit->exited || exit->code != 0) {
    line = last_line(started->output());
    if (line.empty()) line = "a trivial program failed inside";
  } else {
    return path;
  }
  return std::unexpected(fmt::format(
      "bubblewrap cannot make a sandbox here ({}): allow user namespaces (`sysctl "
      "kernel.unprivileged_userns_clone=1`; on Ubuntu 24.04 `sysctl "
      "kernel.apparmor_restrict_unprivileged_userns=0`; in Docker `--security-opt "
      "seccomp=unconfined --security-opt systempaths=unconfined`), or run with `--sandbox none` if "
      "you trust the code",
      line));
}

void Launcher::Impl::probe() {
  std::call_once(probed, [this] {
    if (const auto found = find_and_try(); !found) unavailable = found.error();
  });
}

Launcher::Launcher(Mode mode) : impl_(std::make_unique<Impl>(mode)) {}
Launcher::~Launcher() = default;

const std::string& Launcher::unavailable_reason() {
  impl_->probe();
  return impl_->unavailable;
}

bool Launcher::will_sandbox() {
  return impl_->mode != Mode::none && unavailable_reason().empty();
}

std::expected<Process, std::string> Launcher::start(const Command& command) {
  if (auto fine = check(command); !fine) return std::unexpected(fine.error());
  if (will_sandbox()) return impl_->start_sandboxed(command);
  if (impl_->mode == Mode::require) return std::unexpected(impl_->unavailable);
  if (impl_->mode == Mode::automatic) {
    std::call_once(impl_->warned, [this] {
      spdlog::warn("NO SANDBOX: candidates run with your own rights. {}.", impl_->unavailable);
    });
  }
  return impl_->start_plain(command);
}

}  // namespace kb::sandbox
