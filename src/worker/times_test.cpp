#include "worker/times.h"

#include <gmock/gmock.h>

#include <limits>

namespace kb::worker {
namespace {

using nlohmann::json;
using testing::ElementsAre;

TEST(Times, AreRead) {
  const auto times = parse_times(json::parse(R"({"ok": true, "times_us": [1.5, 0, 3]})"), 3);
  ASSERT_TRUE(times) << times.error();
  EXPECT_THAT(*times, ElementsAre(1.5, 0, 3));
}

TEST(Times, RefusesWhatIsNotOfTheProtocol) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const json number = 1, object = json::object(), none = json::array();
  for (const json& list :
       {number, object, none, json({1}), json({1, 2, 3}), json({1, -1e-9}), json({1, nan}),
        json({1, infinity}), json({1, "2"}), json({1, nullptr}), json({1, true}),
        json({1, json::array({2})}), json(std::vector<int>(kMaxTimes, 1))}) {
    const auto times = parse_times({{"ok", true}, {"times_us", list}}, 2);
    EXPECT_FALSE(times) << list;
    if (!times) {
      EXPECT_FALSE(times.error().empty());
    }
  }
  EXPECT_FALSE(parse_times({{"ok", true}}, 1));
  EXPECT_FALSE(parse_times({{"times_us", std::vector<int>(kMaxTimes + 1, 1)}}, kMaxTimes + 1));
}

TEST(Times, AreAsManyAsWereAskedFor) {
  TimeRequest request{.mode = "host", .slots = {0, 1}, .warmup = 3, .reps = 20};
  EXPECT_EQ(request.samples(), 20u);
  request.mode = "do_bench";
  EXPECT_EQ(request.samples(), 1u);
  EXPECT_EQ(to_json(request), json::parse(R"({"op": "time", "mode": "do_bench", "slots": [0, 1],
                                              "warmup": 3, "reps": 20})"));
}

}  // namespace
}  // namespace kb::worker
