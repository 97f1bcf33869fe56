#include "worker/awake_cpu.h"

#include <pthread.h>
#include <sched.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <system_error>
#include <thread>

#include "device/cpu/affinity.h"
#include "device/cpu/spin.h"
#include "worker/doorbell.h"

namespace kb::worker {
namespace {

constexpr int kNone = -1, kEnd = -2;
constexpr int kPauses = 4;  // between two looks at whether to go on
constexpr std::chrono::seconds kForgotten{1};

bool go_to(pid_t thread, int cpu) {
  return cpu::bind_to_cpus(thread, std::span(&cpu, 1));
}

}  // namespace

struct AwakeCpu::State {
  std::atomic<int> cpu{kNone};
  std::atomic<std::uint32_t> calls{0};
  std::atomic<pid_t> thread{0};

  void call(int to) {
    cpu = to;
    ++calls;
    futex_wake(&calls);
  }
};

std::unique_ptr<AwakeCpu> AwakeCpu::start() {
  auto state = std::make_shared<State>();
  try {
    std::thread([state] { serve(*state); }).detach();
  } catch (const std::system_error&) {
    return nullptr;
  }
  return std::unique_ptr<AwakeCpu>(new AwakeCpu(std::move(state)));
}

AwakeCpu::~AwakeCpu() {
  state_->call(kEnd);
}

void AwakeCpu::keep(int cpu) {
  // From here, while it sleeps: by itself it would first have to be let run where it was.
  if (const pid_t thread = state_->thread; thread != 0) go_to(thread, cpu);
  state_->call(cpu);
}

void AwakeCpu::rest() {
  state_->cpu.store(kNone, std::memory_order_relaxed);
}

void AwakeCpu::serve(State& state) {
  ::pthread_setname_np(::pthread_self(), "awake-cpu");
  const sched_param lowest{};
  if (::pthread_setschedparam(::pthread_self(), SCHED_IDLE, &lowest) != 0) return;
  state.thread = ::gettid();
  for (std::uint32_t seen = 0;;) {
    while (state.calls == seen) futex_wait(&state.calls, seen, -1);
    seen = state.calls;
    const int cpu = state.cpu;
    if (cpu == kEnd) return;
    if (cpu == kNone || !go_to(0, cpu)) continue;
    const auto until = std::chrono::steady_clock::now() + kForgotten;
    while (state.cpu.load(std::memory_order_relaxed) == cpu &&
           std::chrono::steady_clock::now() < until)
      for (int i = 0; i < kPauses; ++i) cpu::spin_pause();
  }
}

}  // namespace kb::worker
