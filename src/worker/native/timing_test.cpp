#include "worker/native/timing.h"

#include <gmock/gmock.h>

#include <map>

namespace kb::worker::native {
namespace {

using testing::AllOf;
using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::SizeIs;

// A device on which a call takes `call_us` and writing over a MB takes 1 us; it knows what was
// written over before each call.
class Simulated final : public Device {
 public:
  double call_us = 500;
  int calls = 0, waits = 0;
  std::vector<std::size_t> cleared;  // by call
  std::size_t events = 0;

  NextCall call() {
    return [this]() -> std::expected<void, Fault> {
      ++calls;
      cleared.push_back(last_cleared_);
      last_cleared_ = 0;
      now_us_ += call_us;
      return {};
    };
  }
  std::expected<std::byte*, Fault> map(int, std::size_t) override { return nullptr; }
  DLDevice dl_device() const override { return {kDLCUDA, 0}; }
  std::expected<void, Fault> synchronize() override {
    ++waits;
    return {};
  }
  std::size_t l2_bytes() const override { return 50u << 20; }
  std::expected<void, Fault> overwrite(std::size_t bytes) override {
    last_cleared_ = bytes;
    now_us_ += static_cast<double>(bytes >> 20);
    return {};
  }
  std::expected<void, Fault> make_events(std::size_t count) override {
    events = std::max(events, count);
    return {};
  }
  std::expected<void, Fault> record(std::size_t event) override {
    EXPECT_LT(event, events);
    at_us_[event] = now_us_;
    return {};
  }
  std::expected<double, Fault> elapsed_us(std::size_t from, std::size_t to) override {
    EXPECT_GT(waits, 0);
    return at_us_.at(to) - at_us_.at(from);
  }

 private:
  double now_us_ = 0;
  std::size_t last_cleared_ = 0;
  std::map<std::size_t, double> at_us_;
};

TEST(TimeCalls, EventsAreAroundTheCallAlone) {
  Simulated device;
  const auto times = time_calls(device, "event", 2, 5, device.call());
  ASSERT_TRUE(times);
  EXPECT_THAT(*times, ElementsAre(500, 500, 500, 500, 500));
  EXPECT_EQ(device.calls, 7);
  EXPECT_THAT(device.cleared, Each(100u << 20)) << "twice the L2, before every call";
}

TEST(TimeCalls, DoBenchDoesWhatTritonDoes) {
  Simulated device;
  const auto times = time_calls(device, "do_bench", 0, 1, device.call());
  ASSERT_TRUE(times);
  EXPECT_THAT(*times, ElementsAre(DoubleNear(500, 1e-6)));
  // The estimate holds the clearing, as Triton's does: 756 us.
  const int warmup = 33, repeats = 132;
  EXPECT_EQ(device.calls, 1 + 5 + warmup + repeats);
  EXPECT_EQ(std::ranges::count(device.cleared, 256u << 20), 5 + repeats);
  device.call_us = 1e6;
  device.calls = 0;
  ASSERT_TRUE(time_calls(device, "do_bench", 0, 1, device.call()));
  EXPECT_EQ(device.calls, 1 + 5 + 1 + 1);
}

TEST(TimeCalls, HostNeedsNoEvents) {
  const auto device = open_cpu();
  int calls = 0;
  const auto times = time_calls(*device, "host", 3, 4, [&]() -> std::expected<void, Fault> {
    ++calls;
    return {};
  });
  ASSERT_TRUE(times);
  EXPECT_THAT(*times, AllOf(SizeIs(4), Each(Ge(0))));
  EXPECT_EQ(calls, 7);
}

TEST(TimeCalls, SaysWhatItCannotDo) {
  const auto device = open_cpu();
  const auto fault_of = [&](const char* mode, const NextCall& call) {
    const auto times = time_calls(*device, mode, 1, 1, call);
    EXPECT_FALSE(times);
    return times ? FaultKind::infrastructure : times.error().kind;
  };
  const NextCall nothing = [] { return std::expected<void, Fault>(); };
  const NextCall fails = [] {
    return std::expected<void, Fault>(std::unexpected(Fault{FaultKind::runtime, "no"}));
  };
  EXPECT_EQ(fault_of("event", nothing), FaultKind::unsupported);
  EXPECT_EQ(fault_of("do_bench", nothing), FaultKind::unsupported);
  EXPECT_EQ(fault_of("sundial", nothing), FaultKind::protocol);
  EXPECT_EQ(fault_of("host", fails), FaultKind::runtime);
}

}  // namespace
}  // namespace kb::worker::native
