#include "worker/timed_cpu.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace kb::worker {
namespace {

constexpr int kPauses = 64;  // between two looks at whether to go on
constexpr std::chrono::milliseconds kForgotten{500};

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

cpu_set_t only(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  return set;
}

// CPU seconds a second that the container may use, where it is told a quota.
std::optional<double> quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double allowed_us = 0, of_us = 0;
  if (!(file >> allowed_us >> of_us) || of_us <= 0) return std::nullopt;  // "max" is no number
  return allowed_us / of_us;
}

// Adds the CPU to, or takes it from, the affinity of every thread of this process; what they start
// inherits that.
void let_threads_use(int cpu, bool use) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const pid_t thread = std::atoi(entry.path().filename().c_str());
    cpu_set_t set;
    if (::sched_getaffinity(thread, sizeof set, &set) != 0) continue;
    if (use)
      CPU_SET(static_cast<unsigned>(cpu), &set);
    else
      CPU_CLR(static_cast<unsigned>(cpu), &set);
    if (CPU_COUNT(&set) > 0) (void)::sched_setaffinity(thread, sizeof set, &set);
  }
}

// A name of the abstract namespace is given back by the kernel, however its owner ends.
FileDescriptor claim(int cpu) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto name = fmt::format("kernelbench-timed-cpu-{}", cpu);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return {};
  return socket;
}

}  // namespace

std::unique_ptr<TimedCpu> TimedCpu::reserve(int fewest) {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < fewest ||
      quota().value_or(fewest) < fewest)
    return nullptr;
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu) {
    if (!CPU_ISSET(static_cast<unsigned>(cpu), &set)) continue;
    if (auto socket = claim(cpu))
      return std::unique_ptr<TimedCpu>(new TimedCpu(cpu, std::move(socket)));
  }
  return nullptr;
}

TimedCpu::TimedCpu(int cpu, FileDescriptor claim) : cpu_(cpu), claim_(std::move(claim)) {
  let_threads_use(cpu_, false);
  thread_ = std::thread([this] { spin(); });
}

TimedCpu::~TimedCpu() {
  rest();
  ended_ = true;
  ++calls_;
  calls_.notify_one();
  thread_.join();
  let_threads_use(cpu_, true);
}

void TimedCpu::admit(pid_t pid) const {
  const auto set = only(cpu_);
  (void)::sched_setaffinity(pid, sizeof set, &set);
}

void TimedCpu::keep_awake() {
  spinning_ = true;
  ++calls_;
  calls_.notify_one();
}

void TimedCpu::spin() {
  ::pthread_setname_np(::pthread_self(), "timed-cpu");
  const sched_param lowest{};
  const auto here = only(cpu_);
  // With an ordinary priority it would be in the way.
  if (::pthread_setschedparam(::pthread_self(), SCHED_IDLE, &lowest) != 0 ||
      ::pthread_setaffinity_np(::pthread_self(), sizeof here, &here) != 0)
    return;
  for (std::uint32_t seen = 0;;) {
    calls_.wait(seen);
    seen = calls_;
    if (ended_) return;  // looked at after `seen` was: the last call comes with it
    auto until = std::chrono::steady_clock::now() + kForgotten;
    while (spinning_.load(std::memory_order_relaxed) && std::chrono::steady_clock::now() < until) {
      for (int i = 0; i < kPauses; ++i) pause();
      if (const std::uint32_t now = calls_; now != seen) {
        seen = now;
        if (ended_) return;
        until = std::chrono::steady_clock::now() + kForgotten;
      }
    }
  }
}

}  // namespace kb::worker
