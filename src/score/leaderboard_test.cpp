#include "score/leaderboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kb::score {
namespace {

using testing::HasSubstr;

Entry entry(const std::string& run, double fast_1, std::optional<double> geomean) {
  Entry result;
  result.run = run;
  result.summary.problems = 10;
  result.summary.attempted = 8;
  result.summary.fast_p = {{0.5, 1, {}, 0.25, {}}, {1, fast_1, {0, 1}, fast_1 / 2, {}}};
  result.summary.correct_rate = {0.75, {}};
  if (geomean) result.summary.geomean_correct = Estimate{*geomean, {}};
  result.summary.pass_at_k[5] = {Estimate{0.9, {}}, 8};
  return result;
}

TEST(Metric, ParsesItsNames) {
  EXPECT_EQ(parse_metric("fast_0.5").value().p, 0.5);
  EXPECT_EQ(parse_metric("fast_1").value().kind, Metric::Kind::fast);
  EXPECT_EQ(parse_metric("verified_2").value().kind, Metric::Kind::verified);
  EXPECT_EQ(parse_metric("pass@10").value().k, 10);
  EXPECT_EQ(parse_metric("geomean_faster").value().kind, Metric::Kind::geomean_faster);
  for (const char* bad : {"", "fast_", "fast_x", "fast_-1", "fast_1e3", "fast_1.2.3", "pass@0",
                          "pass@1.5", "pass@", "pass@99999999999", "speed", "Fast_1"}) {
    const auto metric = parse_metric(bad);
    ASSERT_FALSE(metric) << bad;
    EXPECT_THAT(metric.error(), HasSubstr("verified_P"));
  }
}

TEST(Metric, IsTakenFromASummary) {
  const auto summary = entry("a", 0.5, 1.25).summary;
  const auto value = [&](const char* name) {
    return value_of(summary, parse_metric(name).value());
  };
  EXPECT_EQ(value("fast_1")->value, 0.5);
  EXPECT_EQ(value("verified_1")->value, 0.25);
  EXPECT_EQ(value("fast_0.5")->value, 1);
  EXPECT_EQ(value("correct")->value, 0.75);
  EXPECT_EQ(value("geomean")->value, 1.25);
  EXPECT_EQ(value("pass@5")->value, 0.9);
  EXPECT_FALSE(value("pass@1"));
  EXPECT_FALSE(value("fast_3"));
  EXPECT_FALSE(value("geomean_faster"));
}

TEST(Rank, SortsAndSharesRanks) {
  const auto metric = parse_metric("fast_1").value();
  const auto entries = rank({entry("low", 0.1, 9), entry("b", 0.5, 1), entry("a", 0.5, 2),
                             entry("last", 0.05, std::nullopt)},
                            metric);
  const std::vector<std::pair<std::string, int>> expected = {
      {"b", 1}, {"a", 1}, {"low", 3}, {"last", 4}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(entries[i].run, expected[i].first);
    EXPECT_EQ(entries[i].rank, expected[i].second);
  }
  // What has no value comes last, and shares its place.
  const auto by_mean =
      rank({entry("x", 1, std::nullopt), entry("y", 0, 0.1), entry("z", 1, std::nullopt)},
           parse_metric("geomean").value());
  EXPECT_EQ(by_mean[0].run, "y");
  EXPECT_EQ(by_mean[1].rank, 2);
  EXPECT_EQ(by_mean[2].rank, 2);
}

TEST(LeaderboardOutput, HasTheMetricFirst) {
  const auto metric = parse_metric("geomean").value();
  const auto entries = rank({entry("a|b", 0.5, 1.25)}, metric);
  EXPECT_THAT(to_table(entries, metric).text(),
              HasSubstr("rank  run  problems  attempted  geomean"));
  EXPECT_THAT(to_table(entries, metric).markdown(), HasSubstr("a\\|b"));
  EXPECT_EQ(to_numbers(entries, metric).csv().substr(0, 52),
            "rank,run,problems,attempted,geomean,low,high,fast_1,");
  const auto json = to_json(entries, metric);
  EXPECT_EQ(json["sort"], "geomean");
  EXPECT_EQ(json["runs"][0]["rank"], 1);
  EXPECT_EQ(json["runs"][0]["value"], 1.25);
  EXPECT_EQ(json["runs"][0]["run"], "a|b");
  EXPECT_EQ(json["runs"][0]["problems"], 10);
}

TEST(LeaderboardOutput, CsvHasNumbersAloneAndNothingWhereThereIsNone) {
  const auto metric = parse_metric("fast_1").value();
  const auto csv = to_numbers(rank({entry("a", 1.0 / 3, std::nullopt)}, metric), metric).csv();
  EXPECT_EQ(
      csv,
      "rank,run,problems,attempted,fast_1,low,high,verified_1,correct,geomean,geomean_faster\n"
      "1,a,10,8,0.3333333333333333,0,1,0.16666666666666666,0.75,,\n");
}

}  // namespace
}  // namespace kb::score
