#include "worker/awake_cpu.h"

#include <pthread.h>
#include <sched.h>

#include <chrono>

#include "device/cpu/affinity.h"
#include "device/cpu/spin.h"
#include "worker/doorbell.h"

namespace kb::worker {
namespace {

constexpr int kPauses = 4;  // between two looks at whether to go on
constexpr std::chrono::seconds kForgotten{1};

}  // namespace

AwakeCpu::AwakeCpu() : thread_([this] { serve(); }) {}

AwakeCpu::~AwakeCpu() {
  cpu_ = kEnd;
  ++calls_;
  futex_wake(&calls_);
  thread_.join();
}

void AwakeCpu::keep(int cpu) {
  cpu_ = cpu;
  ++calls_;
  futex_wake(&calls_);
}

void AwakeCpu::serve() {
  ::pthread_setname_np(::pthread_self(), "awake-cpu");
  const sched_param lowest{};
  if (::pthread_setschedparam(::pthread_self(), SCHED_IDLE, &lowest) != 0) return;
  for (std::uint32_t seen = 0;;) {
    while (calls_ == seen) futex_wait(&calls_, seen, -1);
    seen = calls_;
    const int cpu = cpu_;
    if (cpu == kEnd) return;
    if (cpu == kNone || !cpu::bind_to_cpus(0, std::span(&cpu, 1))) continue;
    const auto until = std::chrono::steady_clock::now() + kForgotten;
    while (cpu_.load(std::memory_order_relaxed) == cpu && std::chrono::steady_clock::now() < until)
      for (int i = 0; i < kPauses; ++i) cpu::spin_pause();
  }
}

}  // namespace kb::worker
