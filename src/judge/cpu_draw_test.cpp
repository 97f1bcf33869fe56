#include "judge/cpu_draw.h"

#include <gmock/gmock.h>

#include <set>

namespace kb::judge {
namespace {

using testing::ElementsAre;

using Ticks = std::map<int, CpuTicks>;

std::set<int> drawn(CpuDraw& draw, const Ticks& now) {
  std::set<int> all;
  for (std::uint64_t choice = 0; choice < 12; ++choice) all.insert(*draw.draw(choice, now));
  return all;
}

TEST(CpuTicks, AreReadByCpu) {
  const auto ticks = parse_cpu_ticks(
      "cpu  10 20 30 40 50 60 70 80 90 100\n"
      "cpu0 1 2 3 100 5 6 7 8 9 10\n"
      "cpu17 0 0 0 7\n"
      "cpu3 0 0 0\ncpux 1 2 3 4 5\ncpu\n"
      "intr 1 2 3\n");
  ASSERT_EQ(ticks.size(), 2u);
  EXPECT_EQ(ticks.at(0).all, 132u);
  EXPECT_EQ(ticks.at(0).idle, 105u);
  EXPECT_EQ(ticks.at(17).idle, 7u);
  EXPECT_TRUE(parse_cpu_ticks("").empty());
}

TEST(CpuDraw, IsOfTheIdleOnes) {
  CpuDraw draw({0, 1, 2, 5});
  EXPECT_THAT(drawn(draw, {{0, {100, 100}}, {1, {0, 100}}, {2, {95, 100}}, {5, {80, 100}}}),
              ElementsAre(0, 2));
  // Since then CPU 0 has worked, and 1 has not.
  EXPECT_THAT(drawn(draw, {{0, {110, 200}}, {1, {100, 200}}, {2, {190, 200}}, {5, {80, 200}}}),
              ElementsAre(1, 2));
  // One tick says nothing.
  EXPECT_THAT(drawn(draw, {{0, {111, 201}}, {1, {100, 201}}, {2, {190, 201}}, {5, {81, 201}}}),
              ElementsAre(1, 2));
}

TEST(CpuDraw, IsOfAllWhereNoneIsIdleOrNothingIsKnown) {
  CpuDraw draw({3, 4});
  EXPECT_THAT(drawn(draw, {}), ElementsAre(3, 4));
  EXPECT_THAT(drawn(draw, {{3, {0, 100}}, {4, {0, 100}}}), ElementsAre(3, 4));
}

TEST(CpuDraw, OfNoCpuIsNone) {
  CpuDraw draw({});
  EXPECT_FALSE(draw.draw(7));
}

TEST(CpuDraw, KnowsThisMachine) {
  CpuDraw draw({0});
  EXPECT_EQ(draw.draw(7), 0);
}

}  // namespace
}  // namespace kb::judge
