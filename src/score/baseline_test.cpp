#include "score/baseline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kb::score {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kBaseline = R"({
  "level1": {"19_ReLU.py": {"mean": 3.0, "std": 0.1, "min": 2.9, "max": 3.2, "num_trials": 100},
             "2_Standard_matrix_multiplication_.py": {"mean": 1.5},
             "4_x.py": {"mean": -1.0}, "5_y.py": null, "6_z.py": {"mean": NaN}},
  "level2": {"1_a.py": {"mean": 0.5}}})";

Evaluation timed(const std::string& problem, std::optional<double> time_us) {
  Evaluation evaluation;
  evaluation.problem = problem;
  evaluation.level = level_of(problem);
  evaluation.verdict = "correct";
  evaluation.correct = true;
  evaluation.time_us = time_us;
  evaluation.speedup = 7;
  evaluation.ci_low = 6;
  evaluation.ci_high = 8;
  return evaluation;
}

TEST(Baseline, IsReadByNumber) {
  const auto baseline = Baseline::parse(kBaseline).value();
  EXPECT_EQ(baseline.time_us("level1/19"), 3000);
  EXPECT_EQ(baseline.time_us("level1/2"), 1500);
  EXPECT_EQ(baseline.time_us("level2/1"), 500);
  for (const char* none : {"level1/4", "level1/5", "level1/6", "level1/1", "19", ""})
    EXPECT_EQ(baseline.time_us(none), std::nullopt) << none;
}

TEST(Baseline, RefusesWhatIsForeign) {
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"", "not JSON"},
           {"[]", "not a baseline"},
           {"{\"19\": [{\"correctness\": true}]}", "not a baseline"},
           {"{\"level1\": 3}", "not a baseline"},
           {"{\"level0\": {}}", "not a baseline"},
           {"{\"level1\": {\"ReLU.py\": {\"mean\": 1}}}", "not a baseline"},
           {"{\"level1\": {\"19x.py\": {\"mean\": 1}}}", "not a baseline"},
           {"{\"level1\": {\"1_a.py\": {\"mean\": 1}, \"1_b.py\": {\"mean\": 2}}}", "two times"},
           {"{}", "no time"},
           {"{\"level1\": {\"1_a.py\": {\"mean\": \"1\"}}}", "no time"}}) {
    const auto baseline = Baseline::parse(text);
    ASSERT_FALSE(baseline) << text;
    EXPECT_THAT(baseline.error(), HasSubstr(says)) << text;
  }
}

TEST(Baseline, ReplacesTheSpeedupAndIsNeverVerified) {
  std::vector<Evaluation> evaluations = {timed("level1/19", 1500), timed("level1/4", 10),
                                         timed("level2/1", std::nullopt)};
  EXPECT_THAT(use_baseline(Baseline::parse(kBaseline).value(), evaluations),
              ElementsAre("level1/4"));
  EXPECT_EQ(evaluations[0].speedup, 2);
  EXPECT_TRUE(evaluations[0].faster_than(1));
  EXPECT_FALSE(evaluations[0].has_interval());
  EXPECT_FALSE(evaluations[0].verified_faster_than(0));
  EXPECT_THAT(evaluations[0].flags, ElementsAre("stored_baseline"));
  EXPECT_EQ(evaluations[1].speedup, std::nullopt);  // not the old one
  EXPECT_EQ(evaluations[2].speedup, std::nullopt);
}

TEST(BaselineJson, IsReadBack) {
  Evaluation a = timed("level1/19", 1);
  a.reference_times_us = {1000, 3000, 91000};  // one was interrupted
  a.reference_time_us = 1700;                  // the turns say more
  Evaluation b = timed("level1/19", 1);
  b.sample = 1;
  b.reference_time_us = 5000;
  b.conditions = "cpu, fp32, small";
  Evaluation file = timed("my.py", 1);
  file.reference_time_us = 1;
  Evaluation none = timed("level1/2", 1);
  Evaluation unnamed = timed("level2/1", 1);
  unnamed.reference_time_us = 250;
  const auto json = baseline_json({a, b, file, none, unnamed}, {{"level1/19", "19_ReLU.py"}});
  ASSERT_EQ(json.size(), 2u) << json;
  const auto& relu = json["level1"]["19_ReLU.py"];
  EXPECT_DOUBLE_EQ(relu["mean"].get<double>(), 25);
  EXPECT_NEAR(relu["std"].get<double>(), std::sqrt(1454), 1e-12);
  EXPECT_DOUBLE_EQ(relu["median"].get<double>(), 4);
  EXPECT_EQ(relu["min"], 1);
  EXPECT_EQ(relu["max"], 91);
  EXPECT_EQ(relu["num_trials"], 4);
  EXPECT_EQ(relu["hardware"], "cpu, fp32, small");
  const auto read = Baseline::parse(json.dump()).value();
  EXPECT_DOUBLE_EQ(read.time_us("level1/19").value(), 4000);
  EXPECT_DOUBLE_EQ(read.time_us("level2/1").value(), 250);
}

}  // namespace
}  // namespace kb::score
