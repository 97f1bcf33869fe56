#include "llm/retry.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace kb::llm {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

TEST(WaitBefore, DoublesUpToALimitWithJitter) {
  const RetryPolicy policy{.first = 1s, .longest = 10s};
  EXPECT_EQ(wait_before(1, {}, 0, policy), 500ms);
  EXPECT_EQ(wait_before(1, {}, 0.5, policy), 750ms);
  EXPECT_EQ(wait_before(3, {}, 0, policy), 2000ms);
  EXPECT_EQ(wait_before(9, {}, 0, policy), 5000ms);
  EXPECT_EQ(wait_before(1'000'000, {}, 0, policy), 5000ms);
}

TEST(WaitBefore, AnAskedWaitIsNeverShortened) {
  const RetryPolicy policy{.longest = 10s, .longest_asked = 100s};
  EXPECT_EQ(wait_before(1, 30s, 0, policy), 30s);
  EXPECT_EQ(wait_before(1, 30s, 0.5, policy), 31'500ms);
  EXPECT_EQ(wait_before(1, 0ms, 0.9, policy), 0ms);
  EXPECT_EQ(wait_before(1, 101s, 0, policy), std::nullopt);
}

TEST(ParseRetryAfter, SecondsAndDates) {
  const auto now = std::chrono::system_clock::from_time_t(784'111'777);  // of the date below
  EXPECT_EQ(parse_retry_after("120", now), 120s);
  EXPECT_EQ(parse_retry_after("1.5", now), 1500ms);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now - 90s), 90s);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now + 90s), 0s);
  for (const char* bad : {"", "-1", "soon", "nan", "12 s", "Sun, 06 Nov"})
    EXPECT_EQ(parse_retry_after(bad, now), std::nullopt) << bad;
  EXPECT_GT(parse_retry_after("1e300", now), 1000h) << "no overflow";
}

// Waiting moves it on.
class FakeClock : public Clock {
 public:
  Time now() override { return now_; }
  bool wait_until(Time time, const std::stop_token& stop) override {
    now_ = std::max(now_, time);
    return !stop.stop_requested();
  }
  double seconds() const { return std::chrono::duration<double>(now_.time_since_epoch()).count(); }

 private:
  Time now_{};
};

TEST(RateLimiter, WithoutRatesNobodyWaits) {
  FakeClock clock;
  RateLimiter limiter({}, clock);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(limiter.admit({}));
  EXPECT_EQ(clock.seconds(), 0);
}

TEST(RateLimiter, RequestsPerMinute) {
  FakeClock clock;
  RateLimiter limiter({.requests_per_minute = 60}, clock);
  // Six at once, then one a second.
  for (int i = 0; i < 66; ++i) ASSERT_TRUE(limiter.admit({}));
  EXPECT_NEAR(clock.seconds(), 60, 0.01);
}

TEST(RateLimiter, TokensPerMinute) {
  FakeClock clock;
  RateLimiter limiter({.tokens_per_minute = 6000}, clock);
  ASSERT_TRUE(limiter.admit({}));
  limiter.spend_tokens(3600);  // 600 were free, 3000 take half a minute
  ASSERT_TRUE(limiter.admit({}));
  EXPECT_NEAR(clock.seconds(), 30, 0.01);
}

TEST(RateLimiter, AHoldIsForAll) {
  FakeClock clock;
  RateLimiter limiter({}, clock);
  limiter.hold_until(clock.now() + 5s);
  limiter.hold_until(clock.now() + 2s);
  ASSERT_TRUE(limiter.admit({}));
  EXPECT_NEAR(clock.seconds(), 5, 0.01);
}

TEST(SteadyClock, AStopEndsAWait) {
  SteadyClock clock;
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_FALSE(clock.wait_until(clock.now() + 1h, stop.get_token()));
  EXPECT_TRUE(clock.wait_until(clock.now() - 1s, std::stop_token()));
}

}  // namespace
}  // namespace kb::llm
