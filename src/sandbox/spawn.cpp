#include "sandbox/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace kb::sandbox {
namespace {

/// What the child needs, prepared beforehand: it may not allocate.
struct Child {
  const char* path = nullptr;
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  const char* working_directory = nullptr;
  const std::pair<int, int>* fds = nullptr;
  std::size_t fd_count = 0;
  int* copies = nullptr;  ///< room for fd_count numbers
  int above = 0;          ///< one more than the highest wanted number
  int null = -1;
  const std::pair<int, rlim_t>* limits = nullptr;
  std::size_t limit_count = 0;
  bool read_only_dev = false;
  int cgroup2_procs = -1;  ///< negative when clone3 has already put us there
  const int* cgroup1_tasks = nullptr;
  std::size_t cgroup1_count = 0;

  // Written by the child, which shares our memory until it execs.
  const char* failed_step = nullptr;
  int failed_errno = 0;
};

// The child runs in the parent's memory while the parent waits. Sanitizers must not keep books on
// it, hence raw system calls and no instrumentation.
#define KB_CHILD_CODE __attribute__((noinline, no_sanitize("address", "thread", "undefined")))

KB_CHILD_CODE long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  return ::syscall(number, a, b, c, d, e);
}

KB_CHILD_CODE long address(const void* pointer) {
  return static_cast<long>(reinterpret_cast<std::intptr_t>(pointer));
}

[[noreturn]] KB_CHILD_CODE void fail(Child& child, const char* step) {
  child.failed_errno = errno;
  child.failed_step = step;
  for (;;) call(SYS_exit_group, 127);
}

KB_CHILD_CODE int run_child(void* argument) {
  Child& child = *static_cast<Child*>(argument);

  for (std::size_t i = 0; i < child.cgroup1_count; ++i) {
    // `tasks`, not `cgroup.procs`: moving a whole thread group waits for a grace period of the
    // kernel, 8 ms; moving the calling thread, 25 µs. There is but one here.
    if (call(SYS_write, child.cgroup1_tasks[i], address("0"), 1) != 1)
      fail(child, "joining cgroup");
  }
  if (child.cgroup2_procs >= 0 && call(SYS_write, child.cgroup2_procs, address("0"), 1) != 1) {
    fail(child, "joining cgroup");
  }
  if (call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL) != 0) fail(child, "prctl");
  if (call(SYS_setsid) < 0) fail(child, "setsid");

  // First out of the way of the wanted numbers, then onto them.
  for (std::size_t i = 0; i < child.fd_count; ++i) {
    const long copy = call(SYS_fcntl, child.fds[i].first, F_DUPFD_CLOEXEC, child.above);
    if (copy < 0) fail(child, "copying a descriptor");
    child.copies[i] = static_cast<int>(copy);
  }
  for (int number = 0; number < child.above; ++number) {
    int from = number < 3 ? child.null : -1;
    for (std::size_t i = 0; i < child.fd_count; ++i) {
      if (child.fds[i].second == number) from = child.copies[i];
    }
    if (from < 0) {
      call(SYS_close, number);
    } else if (call(SYS_dup3, from, number, 0) < 0) {
      fail(child, "placing a descriptor");
    }
  }
  if (call(SYS_close_range, child.above, ~0U, 0) != 0) {
    for (int number = child.above; number < 65536; ++number) call(SYS_close, number);
  }

  if (child.working_directory != nullptr &&
      call(SYS_chdir, address(child.working_directory)) != 0) {
    fail(child, "entering the working directory");
  }
  if (child.read_only_dev && call(SYS_unshare, CLONE_NEWNS) == 0) {
    const long root = address("/");
    const long dev = address("/dev");
    call(SYS_mount, 0, root, 0, MS_REC | MS_SLAVE);
    call(SYS_mount, dev, dev, 0, MS_BIND);
    call(SYS_mount, 0, dev, 0, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC);
  }
  // The kernel, when memory runs out, is to take this rather than the judge.
  const long adjust =
      call(SYS_openat, AT_FDCWD, address("/proc/self/oom_score_adj"), O_WRONLY | O_CLOEXEC);
  if (adjust >= 0) {
    call(SYS_write, adjust, address("1000"), 4);
    call(SYS_close, adjust);
  }
  for (std::size_t i = 0; i < child.limit_count; ++i) {
    struct Both {
      std::uint64_t soft, hard;
    } wanted{child.limits[i].second, child.limits[i].second};
    if (call(SYS_prlimit64, 0, child.limits[i].first, address(&wanted), 0) != 0) {
      // Our own hard limit is lower, and lower is as good.
      Both own{};
      if (call(SYS_prlimit64, 0, child.limits[i].first, 0, address(&own)) != 0) {
        fail(child, "setting a limit");
      }
    }
  }

  struct KernelAction {  // all zero: SIG_DFL
    std::uint64_t words[4] = {};
  } action;
  for (int signal = 1; signal <= 64; ++signal) {
    call(SYS_rt_sigaction, signal, address(&action), 0, 8);
  }
  const std::uint64_t none = 0;
  call(SYS_rt_sigprocmask, SIG_SETMASK, address(&none), 0, 8);
  call(SYS_execve, address(child.path), address(child.argv), address(child.environment));
  fail(child, "starting it");
}

/// clone3, with the child born in `cgroup2_folder` unless that is negative: moving an existing
/// process into a group of version 2 would take 8 ms. The C library has no clone3 to call. Negative
/// errno when it is refused or not written for this architecture.
long clone3_child(int cgroup2_folder, void* stack, std::size_t stack_bytes, Child& child,
                  int& pidfd) {
#if defined(__x86_64__)
  clone_args arguments{};
  arguments.flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD;
  arguments.exit_signal = SIGCHLD;
  arguments.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  arguments.stack = reinterpret_cast<std::uint64_t>(stack);
  arguments.stack_size = stack_bytes;
  if (cgroup2_folder >= 0) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = static_cast<std::uint64_t>(cgroup2_folder);
  }
  long result = SYS_clone3;
  register void* child_argument __asm__("r12") = &child;
  register int (*child_code)(void*) __asm__("r13") = &run_child;
  __asm__ volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"  // the child, on its own stack
      "mov %%r12, %%rdi\n\t"
      "call *%%r13\n\t"
      "ud2\n"
      "1:"
      : "+a"(result)
      : "D"(&arguments), "S"(sizeof arguments), "r"(child_argument), "r"(child_code)
      : "rcx", "r11", "memory", "cc");
  return result;
#else
  (void)cgroup2_folder, (void)stack, (void)stack_bytes, (void)child, (void)pidfd;
  return -ENOSYS;
#endif
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& each : strings) result.push_back(const_cast<char*>(each.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

std::expected<Spawned, std::string> spawn(const SpawnRequest& request) {
  const std::vector<char*> argv = pointers(request.argv);
  const std::vector<char*> environment = pointers(request.environment);
  std::vector<int> copies(request.fds.size());
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));

  Child child;
  child.path = request.path.c_str();
  child.argv = argv.data();
  child.environment = environment.data();
  if (!request.working_directory.empty()) {
    child.working_directory = request.working_directory.c_str();
  }
  child.fds = request.fds.data();
  child.fd_count = request.fds.size();
  child.copies = copies.data();
  child.above = 3;
  for (const auto& [ours, theirs] : request.fds) child.above = std::max(child.above, theirs + 1);
  // A copy of /dev/null that no wanted number overwrites.
  const UniqueFd high_null(::fcntl(null.get(), F_DUPFD_CLOEXEC, child.above));
  child.null = high_null.get();
  child.read_only_dev = request.read_only_dev;
  child.limits = request.limits.data();
  child.limit_count = request.limits.size();
  child.cgroup1_tasks = request.cgroup1_tasks.data();
  child.cgroup1_count = request.cgroup1_tasks.size();

  constexpr std::size_t stack_bytes = 64 * 1024;
  void* const stack = ::mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) {
    return std::unexpected(fmt::format("no memory for a stack: {}", std::strerror(errno)));
  }

  // A handler of ours must not run in the child, in our memory.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  int pidfd = -1;
  long pid = clone3_child(request.cgroup2_folder, stack, stack_bytes, child, pidfd);
  UniqueFd procs;
  if (pid == -ENOSYS || pid == -EINVAL || pid == -E2BIG) {
    if (request.cgroup2_folder >= 0) {
      procs.reset(::openat(request.cgroup2_folder, "cgroup.procs", O_WRONLY | O_CLOEXEC));
      child.cgroup2_procs = procs.get();
    }
    pid = ::clone(run_child, static_cast<char*>(stack) + stack_bytes,
                  CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &child, &pidfd);
    if (pid < 0) pid = -errno;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::munmap(stack, stack_bytes);

  if (pid < 0) {
    return std::unexpected(
        fmt::format("{}: no new process: {}", request.path, std::strerror(static_cast<int>(-pid))));
  }
  Spawned spawned{static_cast<pid_t>(pid), UniqueFd(pidfd)};
  if (child.failed_step != nullptr) {
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) != 0 && errno == EINTR) {
    }
    return std::unexpected(fmt::format("{}: {} failed: {}", request.path, child.failed_step,
                                       std::strerror(child.failed_errno)));
  }
  return spawned;
}

}  // namespace kb::sandbox
