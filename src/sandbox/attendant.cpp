#include "sandbox/attendant.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>

namespace kb::sandbox {

Attendant::Attendant()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = 0;
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
  // The judge's signals are for its other threads.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Attendant::~Attendant() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
}

std::expected<Spawned, std::string> Attendant::spawn(const SpawnRequest& request) {
  Fork fork{request, std::nullopt};
  {
    const std::lock_guard lock(mutex_);
    forks_.push_back(&fork);
  }
  wake();
  std::unique_lock lock(mutex_);
  forked_.wait(lock, [&] { return fork.result.has_value(); });
  return std::move(*fork.result);
}

std::uint64_t Attendant::attend(std::shared_ptr<OutputBuffer> output) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = next_number_++;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = number;
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, output->fd(), &event);
  outputs_[number] = std::move(output);
  return number;
}

std::uint64_t Attendant::watch(std::function<void()> check) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = next_number_++;
    checks_[number] = std::move(check);
  }
  wake();
  return number;
}

void Attendant::forget(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (const auto it = outputs_.find(number); it != outputs_.end()) {
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second->fd(), nullptr);
    outputs_.erase(it);
  }
  checks_.erase(number);
}

void Attendant::wake() {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void Attendant::run() {
  using Clock = std::chrono::steady_clock;
  constexpr auto check_interval = std::chrono::milliseconds(20);
  auto next_check = Clock::now();
  std::array<epoll_event, 16> events;
  for (;;) {
    bool checking = false;
    std::vector<Fork*> forks;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      forks.swap(forks_);
      checking = !checks_.empty();
      if (checking && Clock::now() >= next_check) {
        for (const auto& [number, check] : checks_) check();
        next_check = Clock::now() + check_interval;
      }
    }
    for (Fork* fork : forks) {
      auto result = kb::sandbox::spawn(fork->request);
      const std::lock_guard lock(mutex_);
      fork->result = std::move(result);
      forked_.notify_all();
    }

    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                   checking ? static_cast<int>(check_interval.count()) : -1);
    bool flooding = false;
    for (int i = 0; i < count; ++i) {
      const std::uint64_t number = events[static_cast<std::size_t>(i)].data.u64;
      if (number == 0) {
        std::uint64_t ignored = 0;
        (void)!::read(wake_.get(), &ignored, sizeof ignored);
        continue;
      }
      const std::lock_guard lock(mutex_);
      const auto it = outputs_.find(number);
      if (it == outputs_.end()) continue;
      const OutputBuffer::State state = it->second->drain();
      flooding = flooding || state == OutputBuffer::State::flooding;
      if (state == OutputBuffer::State::ended) {
        (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second->fd(), nullptr);
        outputs_.erase(it);
      }
    }
    // A program that does nothing but print is not to cost the judge a CPU.
    if (flooding) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace kb::sandbox
