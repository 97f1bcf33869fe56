// Runs one untrusted program, and is able to stop it, look at it and end it, whatever it does.
//
//   Launcher launcher(Mode::automatic);
//   auto process = launcher.start(command);  // bubblewrap; a plain process where it cannot be had
//   process->freeze(); ... process->thaw(); ... process->kill();
//
// Inside: own user, pid, net, ipc, uts, mount (and where possible cgroup) namespaces, uid and gid
// 65534, no capabilities, a read-only view of the few folders that the command names, private
// /proc, /dev and a size-limited tmpfs on /tmp (and on the home and /dev/shm), a libseccomp filter,
// rlimits, and a memory and process limit by cgroup where one can be made. The network namespace
// holds nothing but a loopback that is down. Nothing of the parent's environment is passed on.
//
// Freezing stops every thread of every process inside, and returns only when the kernel confirms
// it: by the cgroup v2 or v1 freezer when a cgroup can be made, otherwise SIGSTOP to every
// process found in the pid namespace, repeated until a scan finds no new one and every thread
// stopped.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kb::sandbox {

enum class Mode {
  automatic,  ///< bubblewrap where it works, otherwise a plain process and a warning
  require,    ///< bubblewrap or an error
  none        ///< a plain process
};

struct Bind {
  std::string host;    ///< absolute path on the host; a missing one is skipped when `optional`
  std::string inside;  ///< absolute path inside; empty: the same
  bool optional = false;
};

struct Limits {
  std::uint64_t memory_bytes = 8ull << 30;     ///< anonymous and tmpfs memory of the whole sandbox
  std::uint32_t max_processes = 256;           ///< processes and threads together
  std::uint64_t max_file_bytes = 64ull << 20;  ///< largest file that it may write
  std::uint64_t tmpfs_bytes = 256ull << 20;
  std::uint32_t max_open_files = 1024;
};

struct Command {
  std::vector<std::string> argv;  ///< argv[0] is an absolute path
  /// All of it, but for the PWD that bubblewrap adds.
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<Bind> read_only;  ///< beyond the system folders (/usr, /lib*, /bin, /sbin, the few
                                ///< files of /etc that a program needs)
  std::vector<Bind> writable;   ///< a build folder; usually none
  std::vector<std::string> device_nodes;  ///< absolute paths; what a worker on a GPU opens
  std::string working_directory = "/tmp";
  /// Host descriptor → number inside (3 and up); no other is inherited.
  std::vector<std::pair<int, int>> fds;
  Limits limits;
};

/// How a process ended.
struct Exit {
  /// False: by a signal. In a sandbox an exit status of 128 + a signal's number is taken for one
  /// too.
  bool exited = false;
  int code = 0;  ///< exit status or signal number
  /// The memory limit was hit (cgroup's counter), as far as can be told.
  bool out_of_memory = false;
};

/// One started program. Used by one thread at a time; may outlive its launcher.
class Process {
 public:
  ~Process();  ///< kills what is left, reaps it, removes its cgroups
  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;

  bool sandboxed() const;  ///< false: a plain process (flag `unsandboxed`)
  /// Host pid of the program itself (not of bubblewrap). Error when it has already ended.
  std::expected<pid_t, std::string> program_pid() const;
  /// Host pids of every live process inside, bubblewrap's own init left out.
  std::vector<pid_t> pids() const;

  /// Stops everything inside; true once the kernel confirms it, false if the program ended or it
  /// took over ten seconds.
  bool freeze();
  /// When the kernel's confirmation of the last successful freeze() was read.
  std::chrono::steady_clock::time_point frozen_at() const;
  bool thaw();
  bool frozen() const;
  /// "cgroup2", "cgroup1" or "signal".
  const char* freezer_name() const;

  /// SIGKILL to everything inside, frozen or not; returns when all are reaped.
  void kill();
  /// Waits for the program to end, at most `limit`. Null on time-out.
  std::optional<Exit> wait(std::chrono::milliseconds limit);
  /// Readable (POLLIN) when the top process has ended: for poll() beside a socket.
  int pidfd() const;

  /// What it wrote to stdout and stderr so far: at most the first 16 and the last 48 KiB, the
  /// middle replaced by one line. A thread of the launcher drains the pipe, so that a program which
  /// prints gigabytes neither blocks nor fills anything.
  std::string output() const;

 private:
  friend class Launcher;
  struct Impl;
  explicit Process(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class Launcher {
 public:
  explicit Launcher(Mode mode);
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  /// Tries bubblewrap once (first call) with a trivial program. Empty when it works, otherwise one
  /// sentence that says why not and what to do.
  const std::string& unavailable_reason();
  /// True when start() will use bubblewrap.
  bool will_sandbox();

  /// Thread-safe. Error: one sentence (Mode::require without bubblewrap, a missing folder, a failed
  /// fork …).
  std::expected<Process, std::string> start(const Command& command);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The raw `struct sock_filter[]` that the worker protocol's LOCK installs: fork, vfork and clone
/// without CLONE_THREAD fail with EPERM, clone3 with ENOSYS, execve and execveat with EPERM; the
/// rest is allowed.
std::vector<std::byte> no_new_process_filter();

}  // namespace kb::sandbox
