#include "llm/retry.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

namespace kb::llm {

using std::chrono::milliseconds;

bool SteadyClock::wait_until(Time time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  // True would mean that the predicate held, which is when stop was requested.
  never.wait_until(lock, stop, time, [&] { return stop.stop_requested(); });
  return !stop.stop_requested();
}

std::optional<milliseconds> wait_before(int retry, std::optional<milliseconds> asked, double random,
                                        const RetryPolicy& policy) {
  if (asked) {
    if (*asked > policy.longest_asked) return std::nullopt;
    const auto extra = std::min(static_cast<double>(asked->count()) / 10, 10'000.0);
    return *asked + milliseconds(static_cast<std::int64_t>(extra * random));
  }
  const double doubled =
      static_cast<double>(policy.first.count()) * std::exp2(std::clamp(retry - 1, 0, 30));
  const double most = std::min(doubled, static_cast<double>(policy.longest.count()));
  return milliseconds(static_cast<std::int64_t>(most * (0.5 + 0.5 * random)));
}

std::optional<milliseconds> parse_retry_after(std::string_view value,
                                              std::chrono::system_clock::time_point now) {
  constexpr double kMostSeconds = 1e8;
  const std::string text(value);
  if (text.empty()) return std::nullopt;
  char* end = nullptr;
  if (const double seconds = std::strtod(text.c_str(), &end); end != text.c_str() && *end == '\0') {
    if (!(seconds >= 0)) return std::nullopt;
    return milliseconds(static_cast<std::int64_t>(std::min(seconds, kMostSeconds) * 1000));
  }
  std::tm date{};
  const char* rest = ::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
  if (rest == nullptr || *rest != '\0') return std::nullopt;
  const auto then = std::chrono::system_clock::from_time_t(::timegm(&date));
  return std::max(std::chrono::duration_cast<milliseconds>(then - now), milliseconds(0));
}

void RateLimiter::Allowance::fill(double seconds) {
  left = std::min(most, left + seconds * per_second);
}

double RateLimiter::Allowance::seconds_until(double wanted) const {
  return left >= wanted ? 0 : (wanted - left) / per_second;
}

std::optional<RateLimiter::Allowance> RateLimiter::allowance(std::optional<double> per_minute) {
  if (!per_minute) return std::nullopt;
  const double most = std::max(1.0, *per_minute / 10);
  return Allowance{*per_minute / 60, most, most};
}

RateLimiter::RateLimiter(const Rates& rates, Clock& clock)
    : clock_(clock),
      requests_(allowance(rates.requests_per_minute)),
      tokens_(allowance(rates.tokens_per_minute)),
      filled_(clock.now()),
      hold_(filled_) {}

bool RateLimiter::admit(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    Clock::Time ready;
    {
      const std::scoped_lock lock(mutex_);
      const auto now = clock_.now();
      const double passed = std::chrono::duration<double>(now - filled_).count();
      filled_ = now;
      if (requests_) requests_->fill(passed);
      if (tokens_) tokens_->fill(passed);
      double seconds = 0;
      if (requests_) seconds = std::max(seconds, requests_->seconds_until(1));
      if (tokens_) seconds = std::max(seconds, tokens_->seconds_until(0));
      // Rounded up, or the last nanosecond is waited for in circles.
      ready = std::max(hold_, now + std::chrono::nanoseconds(
                                        static_cast<std::int64_t>(std::ceil(seconds * 1e9))));
      if (ready <= now) {
        if (requests_) requests_->left -= 1;
        return true;
      }
    }
    if (!clock_.wait_until(ready, stop)) return false;
  }
  return false;
}

void RateLimiter::spend_tokens(std::int64_t tokens) {
  const std::scoped_lock lock(mutex_);
  if (tokens_) tokens_->left -= static_cast<double>(tokens);
}

void RateLimiter::hold_until(Clock::Time time) {
  const std::scoped_lock lock(mutex_);
  hold_ = std::max(hold_, time);
}

}  // namespace kb::llm
