#include "score/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kb::score {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const json kResult = {
    {"problem", "level1/19"}, {"sample", 2},          {"candidate", "x.cpp"},
    {"backend", "cpp"},       {"verdict", "correct"}, {"correct", true},
    {"speedup", 1.5},         {"flags", {"noisy"}},   {"speedup_ci95", {1.4, 1.6}},
    {"speedup_at_least", 1.2}};

TEST(ParseEvaluation, ReadsAResult) {
  const auto evaluation = parse_evaluation(kResult.dump()).value();
  EXPECT_EQ(evaluation.problem, "level1/19");
  EXPECT_EQ(evaluation.level, 1);
  EXPECT_EQ(evaluation.sample, 2);
  EXPECT_EQ(evaluation.backend, "cpp");
  EXPECT_TRUE(evaluation.correct);
  EXPECT_TRUE(evaluation.counts);
  EXPECT_THAT(evaluation.flags, ElementsAre("noisy"));
  EXPECT_EQ(evaluation.speedup, 1.5);
  EXPECT_EQ(evaluation.ci_low, 1.4);
  EXPECT_EQ(evaluation.ci_high, 1.6);
  EXPECT_EQ(evaluation.at_least, 1.2);
  EXPECT_TRUE(evaluation.verified_faster_than(1.1));
  EXPECT_FALSE(evaluation.verified_faster_than(1.3));
}

TEST(ParseEvaluation, NullsAndWhatMayBeMissing) {
  json result = kResult;
  result.erase("sample");
  result["speedup"] = nullptr;
  result["speedup_ci95"] = {nullptr, 2};
  result["verdict"] = "infrastructure_error";
  const auto evaluation = parse_evaluation(result.dump()).value();
  EXPECT_EQ(evaluation.sample, 0);
  EXPECT_EQ(evaluation.speedup, std::nullopt);
  EXPECT_EQ(evaluation.ci_high, std::nullopt);
  EXPECT_FALSE(evaluation.counts);
  EXPECT_FALSE(evaluation.correct);  // the verdict says otherwise
}

TEST(ParseEvaluation, ReadsTimesAndThePublicVerdict) {
  json result = kResult;
  result["verdict"] = "wrong_value";
  result["correct"] = false;
  result["compiled"] = true;
  result["public"] = {{"compiled", true}, {"correct", true}};
  result["time_us"] = 10;
  result["reference_time_us"] = -1;
  result["turns"] = {{1, 500, 9}, {4, 90, 1}, {4, 50, 1}, {4, 9, 1}};
  result["overhead_us"] = {{"reference", 10}, {"candidate", 11}};
  result["device"] = "cuda:3";
  result["precision"] = "fp32";
  result["size"] = "small";
  auto evaluation = parse_evaluation(result.dump()).value();
  EXPECT_FALSE(evaluation.correct);
  EXPECT_EQ(evaluation.time_us, 10);
  EXPECT_EQ(evaluation.reference_time_us, std::nullopt);
  // The turns with the most calls, less their overhead; none of them negative.
  EXPECT_THAT(evaluation.reference_times_us, ElementsAre(20, 10));
  EXPECT_EQ(evaluation.conditions, "cuda, fp32, small");
  evaluation = by_public_rule(evaluation);
  EXPECT_TRUE(evaluation.correct);
  EXPECT_EQ(evaluation.verdict, "correct");
  evaluation.public_correct = false;
  EXPECT_EQ(by_public_rule(evaluation).verdict, "wrong_value");
  evaluation.counts = false;
  EXPECT_TRUE(by_public_rule(evaluation).correct);  // nothing was learnt: nothing to change
}

TEST(ParseEvaluation, KnowsLevels) {
  const auto level = [](const std::string& problem) {
    json result = kResult;
    result["problem"] = problem;
    return parse_evaluation(result.dump()).value().level;
  };
  EXPECT_EQ(level("level4/20"), 4);
  for (const char* problem : {"", "level", "level/1", "level1", "level1/", "level1/a.py",
                              "levels/1", "level1/2/3", "./level1/2", "level12345678901/2"}) {
    EXPECT_EQ(level(problem), 0) << problem;
  }
}

TEST(ParseEvaluation, NamesTheBadMember) {
  const std::vector<std::pair<const char*, json>> bad = {{"problem", 1},
                                                         {"problem", nullptr},
                                                         {"backend", json::array()},
                                                         {"verdict", true},
                                                         {"correct", "true"},
                                                         {"correct", 1},
                                                         {"sample", -1},
                                                         {"sample", 1.5},
                                                         {"sample", 1e300},
                                                         {"sample", "0"},
                                                         {"sample", 4294967296},
                                                         {"sample", 18446744073709551615ull},
                                                         {"flags", "noisy"},
                                                         {"flags", {1}},
                                                         {"flags", nullptr},
                                                         {"speedup", "fast"},
                                                         {"speedup", true},
                                                         {"speedup_ci95", 1},
                                                         {"speedup_ci95", {1}},
                                                         {"speedup_ci95", {1, 2, 3}},
                                                         {"speedup_ci95", {"a", 1}},
                                                         {"speedup_ci95", json::object()},
                                                         {"speedup_at_least", "a"},
                                                         {"compiled", 1},
                                                         {"public", true},
                                                         {"public", {{"compiled", true}}},
                                                         {"time_us", "1"},
                                                         {"turns", {1}},
                                                         {"turns", {{1, 2}}},
                                                         {"turns", "none"}};
  for (const auto& [name, value] : bad) {
    json result = kResult;
    result[name] = value;
    const auto evaluation = parse_evaluation(result.dump());
    ASSERT_FALSE(evaluation) << result;
    EXPECT_THAT(evaluation.error(), HasSubstr("`" + std::string(name) + "`"));
  }
  for (const char* name : {"problem", "backend", "verdict", "correct", "flags"}) {
    json result = kResult;
    result.erase(name);
    EXPECT_THAT(parse_evaluation(result.dump()).error(), HasSubstr("`" + std::string(name) + "`"));
  }
}

TEST(ParseEvaluation, SurvivesAnyBytes) {
  const std::string whole = kResult.dump();
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_evaluation(whole.substr(0, size)));
  for (const std::string& bytes : {std::string(1'000'000, '['), std::string("[]"),
                                   std::string("null"), std::string("{\"speedup\":1e999}"),
                                   std::string("{\"problem\":\"\xff\"}"), std::string(10, '\0')}) {
    EXPECT_FALSE(parse_evaluation(bytes));
  }
}

}  // namespace
}  // namespace kb::score
