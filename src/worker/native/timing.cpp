#include "worker/native/timing.h"

#include <algorithm>
#include <chrono>
#include <string>

namespace kb::worker::native {
namespace {

using Done = std::expected<void, Fault>;
using Times = std::expected<std::vector<double>, Fault>;

// Of triton.testing.do_bench.
constexpr int kEstimateCalls = 5;
constexpr double kWarmupMs = 25, kRepeatMs = 100;
constexpr std::size_t kClearedBytes = std::size_t{256} << 20;
// What a call takes at least, with the clearing: bounds the repetitions.
constexpr double kLeastEstimateMs = 0.01;

// The steps in order, up to the first that fails.
template <class... Steps>
Done in_order(Steps&&... steps) {
  Done done;
  (void)((done = steps()).has_value() && ...);
  return done;
}

class Timing {
 public:
  Timing(Device& device, const NextCall& call) : device_(device), call_(call) {}

  Times host(int warmup, int reps) {
    std::vector<double> times;
    for (int i = 0; i < warmup + reps; ++i) {
      const auto start = std::chrono::steady_clock::now();
      if (auto done = in_order(call_, wait_); !done) return std::unexpected(done.error());
      const std::chrono::duration<double, std::micro> time =
          std::chrono::steady_clock::now() - start;
      if (i >= warmup) times.push_back(time.count());
    }
    return times;
  }

  Times events(int warmup, int reps) {
    if (auto made = device_.make_events(2); !made) return std::unexpected(made.error());
    const std::size_t cleared = 2 * device_.l2_bytes();
    std::vector<double> times;
    for (int i = 0; i < warmup + reps; ++i) {
      if (auto done = in_order(clear(cleared), mark(0), call_, mark(1), wait_); !done)
        return std::unexpected(done.error());
      const auto time = device_.elapsed_us(0, 1);
      if (!time) return std::unexpected(time.error());
      if (i >= warmup) times.push_back(*time);
    }
    return times;
  }

  Times do_bench() {
    if (auto done = in_order(call_, wait_); !done) return std::unexpected(done.error());
    if (auto made = device_.make_events(2); !made) return std::unexpected(made.error());
    if (auto done = in_order(mark(0)); !done) return std::unexpected(done.error());
    for (int i = 0; i < kEstimateCalls; ++i)
      if (auto done = in_order(clear(kClearedBytes), call_); !done)
        return std::unexpected(done.error());
    if (auto done = in_order(mark(1), wait_); !done) return std::unexpected(done.error());
    const auto estimate = device_.elapsed_us(0, 1);
    if (!estimate) return std::unexpected(estimate.error());
    const double call_ms = std::max(*estimate / 1000 / kEstimateCalls, kLeastEstimateMs);
    const auto warmup = std::max<std::size_t>(1, static_cast<std::size_t>(kWarmupMs / call_ms));
    const auto reps = std::max<std::size_t>(1, static_cast<std::size_t>(kRepeatMs / call_ms));

    if (auto made = device_.make_events(2 * reps); !made) return std::unexpected(made.error());
    for (std::size_t i = 0; i < warmup; ++i)
      if (auto done = call_(); !done) return std::unexpected(done.error());
    for (std::size_t i = 0; i < reps; ++i)
      if (auto done = in_order(clear(kClearedBytes), mark(2 * i), call_, mark(2 * i + 1)); !done)
        return std::unexpected(done.error());
    if (auto done = wait_(); !done) return std::unexpected(done.error());
    std::vector<double> times;
    for (std::size_t i = 0; i < reps; ++i) {
      const auto time = device_.elapsed_us(2 * i, 2 * i + 1);
      if (!time) return std::unexpected(time.error());
      times.push_back(*time);
    }
    std::ranges::sort(times);
    return std::vector{(times[(reps - 1) / 2] + times[reps / 2]) / 2};
  }

 private:
  NextCall clear(std::size_t bytes) {
    return [this, bytes] { return device_.overwrite(bytes); };
  }
  NextCall mark(std::size_t event) {
    return [this, event] { return device_.record(event); };
  }

  Device& device_;
  const NextCall& call_;
  const NextCall wait_ = [this] { return device_.synchronize(); };
};

}  // namespace

Times time_calls(Device& device, std::string_view mode, int warmup, int reps,
                 const NextCall& call) {
  Timing timing(device, call);
  if (mode == "host") return timing.host(warmup, reps);
  if (mode == "event") return timing.events(warmup, reps);
  if (mode == "do_bench") return timing.do_bench();
  return std::unexpected(
      Fault{FaultKind::protocol, "there is no way of timing called " + std::string(mode)});
}

}  // namespace kb::worker::native
