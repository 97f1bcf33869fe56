// When a question is asked again, and how many may be asked at all: exponential backoff with
// jitter, what the server asks for (Retry-After), and the rates that its terms allow.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>

namespace kb::llm {

/// The clock that waits are measured by; tests have their own.
class Clock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  virtual ~Clock() = default;
  virtual Time now() = 0;
  /// False when `stop` was requested before `time` came.
  virtual bool wait_until(Time time, const std::stop_token& stop) = 0;
};

class SteadyClock : public Clock {
 public:
  Time now() override { return std::chrono::steady_clock::now(); }
  bool wait_until(Time time, const std::stop_token& stop) override;
};

struct RetryPolicy {
  int retries = 6;
  std::chrono::milliseconds first{1'000};     ///< the wait before the first retry, doubled by each
  std::chrono::milliseconds longest{60'000};  ///< of our own waits
  std::chrono::milliseconds longest_asked{600'000};  ///< of those that a server may ask for
};

/// The wait before retry `retry` (the first is 1). `asked`: by the server. `random`: from [0, 1).
/// Half of an own wait is random, so that workers who failed together do not come back together; to
/// an asked one up to a tenth is added. Null: the server asks for more than the policy grants.
std::optional<std::chrono::milliseconds> wait_before(int retry,
                                                     std::optional<std::chrono::milliseconds> asked,
                                                     double random, const RetryPolicy& policy);

/// The header's value, seconds or an HTTP date. Null when it is neither. `now`: of the date.
std::optional<std::chrono::milliseconds> parse_retry_after(
    std::string_view value, std::chrono::system_clock::time_point now);

struct Rates {
  std::optional<double> requests_per_minute, tokens_per_minute;
};

/// Admits requests at the allowed rates, for all workers together. Requests are counted when they
/// start, tokens when the answer says how many they were: the next requests wait for what the last
/// ones used. A tenth of a minute's allowance may be used at once.
class RateLimiter {
 public:
  RateLimiter(const Rates& rates, Clock& clock);

  /// Waits for a request's turn. False when `stop` came first.
  bool admit(const std::stop_token& stop);
  void spend_tokens(std::int64_t tokens);
  /// Nobody starts before `time`: the server has said so to one of us.
  void hold_until(Clock::Time time);

 private:
  // What is left of an allowance that fills up with time. May be below zero.
  struct Allowance {
    double per_second = 0, most = 0, left = 0;
    void fill(double seconds);
    double seconds_until(double wanted) const;
  };
  static std::optional<Allowance> allowance(std::optional<double> per_minute);

  Clock& clock_;
  std::mutex mutex_;
  std::optional<Allowance> requests_, tokens_;
  Clock::Time filled_;
  Clock::Time hold_;
};

}  // namespace kb::llm
