// The programs that the tests of this folder run in a sandbox: this test executable itself, started
// as `sandbox_test --program NAME [ARGUMENT…]`, so that no interpreter is needed. And its main().
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "sandbox/sandbox.h"

namespace {

using Arguments = std::vector<std::string>;

void print(const std::string& text) {
  (void)!::write(1, text.data(), text.size());
}

void print_result(const std::string& what, bool worked) {
  print(fmt::format("{}: {}\n", what, worked ? "worked" : std::strerror(errno)));
}

int hello(const Arguments&) {
  print("hello\n");
  return 7;
}

int list_environment(const Arguments&) {
  for (char** each = environ; *each != nullptr; ++each) print(fmt::format("{}\n", *each));
  return 0;
}

int list_fds(const Arguments&) {
  DIR* dir = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(dir)) {
    if (entry->d_name[0] != '.' && std::atoi(entry->d_name) != ::dirfd(dir)) {
      print(fmt::format("{} ", entry->d_name));
    }
  }
  char text[64] = {};
  (void)!::read(5, text, sizeof text - 1);
  print(fmt::format("5 says {}\n", text));
  return 0;
}

int try_to_read(const Arguments& paths) {
  for (const std::string& path : paths) print_result(path, ::open(path.c_str(), O_RDONLY) >= 0);
  return 0;
}

int try_to_write(const Arguments& paths) {
  for (const std::string& path : paths) {
    print_result(path, ::open(path.c_str(), O_WRONLY | O_CREAT, 0644) >= 0);
  }
  print_result("chmod", ::chmod("/dev/null", 0666) == 0);
  return 0;
}

int fill_file(const Arguments& arguments) {
  ::signal(SIGXFSZ, SIG_IGN);
  const int file = ::open(arguments[0].c_str(), O_WRONLY | O_CREAT, 0644);
  const std::string block(64 * 1024, 'x');
  long total = 0;
  ssize_t wrote = 0;
  while ((wrote = ::write(file, block.data(), block.size())) > 0) total += wrote;
  print(fmt::format("{} KiB: {}", total / 1024, std::strerror(errno)));
  return 0;
}

int refused_calls(const Arguments&) {
  const auto socket = [](int family) { return ::socket(family, SOCK_STREAM, 0); };
  print_result("inet", socket(AF_INET) >= 0);
  print_result("inet6", socket(AF_INET6) >= 0);
  print_result("netlink", ::socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
  print_result("unix", socket(AF_UNIX) >= 0);
  print_result("ptrace", ::ptrace(PTRACE_TRACEME) == 0);
  print_result("unshare", ::unshare(CLONE_NEWUSER) == 0);
  print_result("mount", ::mount("none", "/tmp", "tmpfs", 0, nullptr) == 0);
  print_result("bpf", ::syscall(SYS_bpf, 0, nullptr, 0) >= 0);
  print_result("io_uring_setup", ::syscall(SYS_io_uring_setup, 1, nullptr) >= 0);
  print_result("perf_event_open", ::syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0) >= 0);
  print_result("clone", ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) >= 0);
  print_result("clone3", ::syscall(SYS_clone3, nullptr, 0) >= 0);
  print_result("init's memory", ::open("/proc/1/mem", O_RDWR) >= 0);
  print_result("own memory", ::open("/proc/self/mem", O_RDWR) >= 0);
  print_result("kernel setting", ::open("/proc/sys/kernel/core_pattern", O_WRONLY) >= 0);
  return 0;
}

/// Forks until that fails, then says how often it worked.
int fork_many(const Arguments&) {
  int made = 0;
  while (made < 100'000) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (;;) ::pause();
    }
    if (pid < 0) break;
    ++made;
  }
  print(fmt::format("{} children", made));
  return 0;
}

int fork_bomb(const Arguments&) {
  for (;;) (void)!::fork();
}

int hog_memory(const Arguments&) {
  constexpr std::size_t step = 8 << 20;
  for (;;) {
    void* const block = std::malloc(step);
    if (block == nullptr) return 3;
    std::memset(block, 1, step);
  }
}

/// `count FD THREADS PROCESSES STYLE`: each thread of each process adds to a counter of its own, a
/// cache line long, in the memory behind FD. STYLE "fork" lets short-lived children do the adding,
/// "vfork" a child that never execs.
int count(const Arguments& arguments) {
  const int threads = std::stoi(arguments[1]);
  const int processes = std::stoi(arguments[2]);
  const std::string style = arguments[3];
  auto* const counters = static_cast<std::atomic<long>*>(
      ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, std::stoi(arguments[0]), 0));
  const auto run = [&](int index) {
    std::atomic<long>& counter = counters[index * 8];
    if (style == "vfork" && ::vfork() == 0) {
      for (;;) ++counter;
    }
    while (style == "fork") {
      const pid_t pid = ::fork();
      if (pid == 0) {
        for (int i = 0; i < 1000; ++i) ++counter;
        ::_exit(0);
      }
      if (pid > 0) ::waitpid(pid, nullptr, 0);
    }
    for (;;) ++counter;
  };
  int first = 0;
  for (int process = 1; process < processes; ++process) {
    if (::fork() == 0) {
      first = process * threads;
      break;
    }
  }
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(run, first + thread);
  run(first);
  return 0;
}

int flood(const Arguments&) {
  print("the beginning\n");
  const std::string line(64 * 1024, 'y');
  for (long written = 0; written < 200l << 20; written += static_cast<long>(line.size()))
    print(line);
  print("the end\n");
  return 0;
}

int sleep_long(const Arguments&) {
  print("asleep\n");
  for (;;) ::pause();
}

/// Leaves a child behind in a session of its own.
int abandon(const Arguments&) {
  if (::fork() == 0) {
    ::setsid();
    if (::fork() != 0) ::_exit(0);
    for (;;) ::pause();
  }
  return 0;
}

int crash(const Arguments&) {
  std::abort();
}

/// Installs no_new_process_filter() for all threads, from one of several, and tries what it is
/// about.
int lock_processes(const Arguments&) {
  std::atomic<bool> locked = false, stop = false;
  std::string report;
  std::thread other([&] {
    while (!locked) std::this_thread::yield();
    if (const pid_t pid = ::fork(); pid >= 0) {
      if (pid == 0) ::_exit(0);
      report += "fork ";
    }
    if (::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0) ::_exit(0);
    if (errno != EPERM) report += "clone ";
    if (::syscall(SYS_clone3, nullptr, 0) != -1 || errno != ENOSYS) report += "clone3 ";
    char* arguments[] = {nullptr};
    if (::execve("/bin/true", arguments, arguments) != -1 || errno != EPERM) report += "execve ";
    stop = true;
  });
  std::vector<std::byte> filter = kb::sandbox::no_new_process_filter();
  sock_fprog program{};
  program.len = static_cast<unsigned short>(filter.size() / sizeof(sock_filter));
  program.filter = reinterpret_cast<sock_filter*>(filter.data());
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
    report += fmt::format("seccomp: {} ", std::strerror(errno));
  }
  locked = true;
  other.join();
  bool ran = false;
  std::thread([&] { ran = true; }).join();
  if (!ran) report += "no thread ";
  print(report.empty() ? "locked" : "not refused: " + report);
  return 0;
}

const std::map<std::string, std::function<int(const Arguments&)>> programs = {
    {"hello", hello},
    {"list_environment", list_environment},
    {"list_fds", list_fds},
    {"try_to_read", try_to_read},
    {"try_to_write", try_to_write},
    {"fill_file", fill_file},
    {"refused_calls", refused_calls},
    {"fork_many", fork_many},
    {"fork_bomb", fork_bomb},
    {"hog_memory", hog_memory},
    {"count", count},
    {"flood", flood},
    {"sleep", sleep_long},
    {"abandon", abandon},
    {"crash", crash},
    {"lock_processes", lock_processes},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 3 && std::string(argv[1]) == "--program") {
    return programs.at(argv[2])(Arguments(argv + 3, argv + argc));
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
