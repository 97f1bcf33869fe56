#include "sandbox/freezer.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <string_view>
#include <thread>

#include "sandbox/process_tree.h"
#include "sandbox/unique_fd.h"

namespace kb::sandbox {
namespace {

using Clock = std::chrono::steady_clock;

/// Waiting between two looks. A freeze takes some tens of microseconds, and what is to stop may
/// need this very CPU to do so: sched_yield() would not give it away for long (the scheduler sees a
/// thread that is still within its slice), a short sleep does (much shorter ones than this starve
/// it again).
class Backoff {
 public:
  explicit Backoff(std::chrono::milliseconds limit) : start_(Clock::now()), end_(start_ + limit) {
    // By default a sleep of 20 us takes 70: the kernel rounds up by the thread's timer slack.
    ::prctl(PR_SET_TIMERSLACK, 1UL);
  }
  /// False when the time is over.
  bool pause() {
    const auto now = Clock::now();
    if (now > end_) return false;
    std::this_thread::sleep_for(
        std::chrono::microseconds(now - start_ < std::chrono::milliseconds(1) ? 20 : 100));
    return true;
  }
  std::chrono::nanoseconds elapsed() const { return Clock::now() - start_; }

 private:
  Clock::time_point start_, end_;
};

/// A control file that is written and read again and again.
class ControlFile {
 public:
  ControlFile(int folder, const char* name, int flags)
      : file_(::openat(folder, name, flags | O_CLOEXEC)) {}
  bool write(std::string_view text) const {
    return ::pwrite(file_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  }
  std::string_view read() {
    const ssize_t got = ::pread(file_.get(), buffer_.data(), buffer_.size(), 0);
    return {buffer_.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  }

 private:
  UniqueFd file_;
  std::array<char, 256> buffer_{};
};

class Cgroup2Freezer final : public Freezer {
 public:
  explicit Cgroup2Freezer(int folder)
      : freeze_(folder, "cgroup.freeze", O_WRONLY), events_(folder, "cgroup.events", O_RDONLY) {}
  const char* name() const override { return "cgroup2"; }

  bool freeze(std::chrono::milliseconds limit) override {
    if (!freeze_.write("1")) return false;
    Backoff backoff(limit);
    do {
      const std::string_view events = events_.read();
      if (events.find("populated 1") == std::string_view::npos) break;
      if (events.find("frozen 1") != std::string_view::npos) return true;
    } while (backoff.pause());
    (void)thaw();
    return false;
  }
  bool thaw() override { return freeze_.write("0"); }

 private:
  ControlFile freeze_, events_;
};

class Cgroup1Freezer final : public Freezer {
 public:
  explicit Cgroup1Freezer(int folder)
      : state_(folder, "freezer.state", O_RDWR), processes_(folder, "cgroup.procs", O_RDONLY) {}
  const char* name() const override { return "cgroup1"; }

  bool freeze(std::chrono::milliseconds limit) override {
    if (!state_.write("FROZEN")) return false;
    Backoff backoff(limit);
    do {
      if (state_.read() == "FROZEN\n") {
        // An empty group is frozen at once.
        if (!processes_.read().empty()) return true;
        break;
      }
    } while (backoff.pause());
    (void)thaw();
    return false;
  }
  bool thaw() override { return state_.write("THAWED"); }

 private:
  ControlFile state_, processes_;
};

class SignalFreezer final : public Freezer {
 public:
  explicit SignalFreezer(std::function<std::vector<pid_t>()> processes)
      : processes_(std::move(processes)) {}
  const char* name() const override { return "signal"; }

  bool freeze(std::chrono::milliseconds limit) override {
    stopped_.clear();
    Backoff backoff(limit);
    int clean_walks = 0;
    auto next_repeat = std::chrono::milliseconds(2);
    do {
      const std::vector<pid_t> found = processes_();
      if (found.empty()) break;
      // Someone still running may have continued one that had stopped.
      const bool repeat = backoff.elapsed() > next_repeat;
      if (repeat) next_repeat *= 2;
      bool clean = true;
      for (pid_t pid : found) {
        const bool is_new = std::ranges::find(stopped_, pid) == stopped_.end();
        if (!is_new && !repeat) continue;
        ::kill(pid, SIGSTOP);
        if (is_new) {
          stopped_.push_back(pid);
          clean = false;
        }
      }
      // A thread that waits uninterruptibly never becomes T, such as one between vfork and its
      // child's exec. It cannot return to its program either, the signal being pending.
      const bool accept_blocked = backoff.elapsed() > std::chrono::milliseconds(5);
      for (std::size_t i = 0; clean && i < found.size(); ++i) {
        clean = is_stopped(found[i], accept_blocked);
      }
      clean_walks = clean ? clean_walks + 1 : 0;
      if (clean_walks == 2) return true;
    } while (clean_walks > 0 || backoff.pause());
    (void)thaw();
    return false;
  }

  bool thaw() override {
    bool any = false;
    for (pid_t pid : stopped_) any = ::kill(pid, SIGCONT) == 0 || any;
    stopped_.clear();
    return any;
  }

 private:
  std::function<std::vector<pid_t>()> processes_;
  std::vector<pid_t> stopped_;
};

}  // namespace

std::unique_ptr<Freezer> cgroup2_freezer(int folder) {
  return std::make_unique<Cgroup2Freezer>(folder);
}

std::unique_ptr<Freezer> cgroup1_freezer(int folder) {
  return std::make_unique<Cgroup1Freezer>(folder);
}

std::unique_ptr<Freezer> signal_freezer(std::function<std::vector<pid_t>()> processes) {
  return std::make_unique<SignalFreezer>(std::move(processes));
}

}  // namespace kb::sandbox
