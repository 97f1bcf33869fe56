#include "score/score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "score/bootstrap.h"

namespace kb::score {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Evaluation evaluation(const std::string& problem, std::optional<double> speedup, int sample = 0) {
  Evaluation result;
  result.problem = problem;
  result.level = problem.starts_with("level") ? problem[5] - '0' : 0;
  result.sample = sample;
  result.backend = "cpp";
  result.correct = speedup.has_value();
  result.verdict = result.correct ? "correct" : "wrong_value";
  result.speedup = speedup;
  if (speedup) {
    result.ci_low = *speedup * 0.95;
    result.ci_high = *speedup * 1.05;
  }
  return result;
}

double fast(const Summary& summary, double p) {
  for (const FastP& each : summary.fast_p) {
    if (each.p == p) return each.value;
  }
  return -1;
}

double verified(const Summary& summary, double p) {
  for (const FastP& each : summary.fast_p) {
    if (each.p == p) return each.verified;
  }
  return -1;
}

TEST(Summarize, CountsOverAllProblems) {
  const auto summaries = summarize(
      {evaluation("level1/1", 2.0), evaluation("level1/2", 1.0), evaluation("level1/3", 0.5),
       evaluation("level2/1", std::nullopt), evaluation("my.py", 4.0)});
  ASSERT_EQ(summaries.size(), 3u);
  EXPECT_EQ(summaries[0].name, "all");
  EXPECT_EQ(summaries[0].problems, 5);
  EXPECT_EQ(summaries[0].correct, 4);
  EXPECT_EQ(summaries[0].faster, 2);
  EXPECT_DOUBLE_EQ(fast(summaries[0], 0), 0.8);
  EXPECT_DOUBLE_EQ(fast(summaries[0], 0.5), 0.6);  // strictly more
  EXPECT_DOUBLE_EQ(fast(summaries[0], 1), 0.4);
  EXPECT_DOUBLE_EQ(fast(summaries[0], 2), 0.2);
  EXPECT_DOUBLE_EQ(fast(summaries[0], 5), 0);
  EXPECT_NEAR(*summaries[0].geomean_correct, std::sqrt(2.0), 1e-12);
  EXPECT_NEAR(*summaries[0].geomean_correct_and_faster, std::sqrt(8.0), 1e-12);
  EXPECT_EQ(summaries[1].name, "level1");
  EXPECT_EQ(summaries[1].problems, 3);
  EXPECT_EQ(summaries[2].name, "level2");
  EXPECT_EQ(summaries[2].geomean_correct, std::nullopt);
  EXPECT_EQ(summaries[0].verdicts,
            (std::map<std::string, int>{{"correct", 4}, {"wrong_value", 1}}));
}

TEST(Summarize, NothingIsNoProblem) {
  const auto summaries = summarize({});
  ASSERT_EQ(summaries.size(), 1u);
  EXPECT_EQ(summaries[0].problems, 0);
  EXPECT_EQ(fast(summaries[0], 1), 0);
  EXPECT_TRUE(summaries[0].pass_at_k.empty());
  EXPECT_THAT(to_text(summaries, {}), HasSubstr("all"));
}

// users.md 85: NaN samples classified as within budget.
TEST(Summarize, OddSpeedupsAreNeverFaster) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const double odd : {std::nan(""), kInf, -kInf, 0.0, -2.0}) {
    const auto summary = summarize({evaluation("level1/1", odd)})[0];
    EXPECT_EQ(summary.correct, 1);
    EXPECT_EQ(summary.faster, 0) << odd;
    EXPECT_EQ(summary.geomean_correct, std::nullopt) << odd;
    for (const FastP& each : summary.fast_p) {
      EXPECT_EQ(each.value, 0) << odd;
      EXPECT_EQ(each.verified, 0) << odd;
    }
  }
  Evaluation none = evaluation("level1/1", 1.0);
  none.speedup = std::nullopt;
  EXPECT_EQ(fast(summarize({none})[0], 0), 0);
  // A wrong kernel is never fast.
  Evaluation wrong = evaluation("level1/1", 9.0);
  wrong.correct = false;
  EXPECT_EQ(fast(summarize({wrong})[0], 0), 0);
}

TEST(Summarize, VerifiedNeedsTheIntervalAndNoFlag) {
  Evaluation clear = evaluation("level1/1", 1.2);
  Evaluation touching = evaluation("level1/2", 1.04);  // 0.988–1.092
  Evaluation flagged = evaluation("level1/3", 9.0);
  flagged.flags = {"faster_than_physics"};
  Evaluation explained = evaluation("level1/4", 9.0);
  explained.flags = {"launch_bound", "library_call"};
  Evaluation no_interval = evaluation("level1/5", 9.0);
  no_interval.ci_low = no_interval.ci_high = std::nullopt;
  Evaluation nan_interval = evaluation("level1/6", 9.0);
  nan_interval.ci_low = std::nan("");
  Evaluation turned = evaluation("level1/7", 9.0);
  std::swap(turned.ci_low, turned.ci_high);
  Evaluation endless = evaluation("level1/8", 9.0);
  endless.ci_high = std::numeric_limits<double>::infinity();
  const auto summary = summarize(
      {clear, touching, flagged, explained, no_interval, nan_interval, turned, endless})[0];
  EXPECT_DOUBLE_EQ(fast(summary, 1), 1);
  EXPECT_DOUBLE_EQ(verified(summary, 1), 2.0 / 8);
  EXPECT_DOUBLE_EQ(verified(summary, 2), 1.0 / 8);
}

TEST(Disqualifies, AllButExplanations) {
  for (const char* flag :
       {"faster_than_physics", "reduced_precision", "nondeterministic", "input_mutated",
        "gpu_busy_after_done", "device_time_disagrees", "unsandboxed", "baseline_disturbed",
        "self_reported", "some_later_flag", ""}) {
    EXPECT_TRUE(disqualifies(flag)) << flag;
  }
  EXPECT_FALSE(disqualifies("launch_bound"));
  EXPECT_FALSE(disqualifies("noisy"));
  EXPECT_FALSE(disqualifies("library_call"));
}

TEST(Summarize, SelfReportedIsNeverVerified) {
  Evaluation own = evaluation("level1/1", 9.0);
  own.flags = {"self_reported", "noisy"};
  const std::vector<Evaluation> evaluations = {own, evaluation("level1/2", 9.0)};
  const auto summaries = summarize(evaluations);
  EXPECT_DOUBLE_EQ(fast(summaries[0], 2), 1);
  EXPECT_DOUBLE_EQ(verified(summaries[0], 2), 0.5);
  EXPECT_THAT(to_text(summaries, evaluations), HasSubstr("1 speedup is self-reported"));
  EXPECT_THAT(to_text(summaries, {evaluations[1]}), Not(HasSubstr("self-reported")));
}

TEST(Summarize, SampleZeroCounts) {
  auto summary = summarize({evaluation("level1/1", 9.0, 1), evaluation("level1/1", 0.6, 0)})[0];
  EXPECT_EQ(summary.problems, 1);
  EXPECT_EQ(summary.samples, 2);
  EXPECT_EQ(summary.faster, 0);
  EXPECT_NEAR(*summary.geomean_correct, 0.6, 1e-12);
  // A wrong sample 0 is not excused by a right sample 1.
  summary = summarize({evaluation("level1/1", std::nullopt, 0), evaluation("level1/1", 9.0, 1)})[0];
  EXPECT_EQ(summary.correct, 0);
}

TEST(Summarize, InfrastructureErrorsAreLeftOutAndReported) {
  Evaluation lost = evaluation("level1/1", std::nullopt);
  lost.verdict = "infrastructure_error";
  lost.counts = false;
  Evaluation lost_zero = lost;
  lost_zero.problem = "level1/2";
  const auto summaries = summarize({lost, lost_zero, evaluation("level1/2", 2.0, 1)});
  EXPECT_EQ(summaries[0].problems, 1);
  EXPECT_EQ(summaries[0].samples, 1);
  EXPECT_EQ(summaries[0].infrastructure_errors, 2);
  EXPECT_DOUBLE_EQ(fast(summaries[0], 1), 1);
  EXPECT_EQ(summaries[0].verdicts.at("infrastructure_error"), 2);
  EXPECT_THAT(to_text(summaries, {}), HasSubstr("2 samples were not judged"));
}

TEST(Summarize, PassAtK) {
  std::vector<Evaluation> evaluations;
  for (int i = 0; i < 4; ++i)
    evaluations.push_back(evaluation("level1/1", i == 3 ? std::optional(1.0) : std::nullopt, i));
  for (int i = 0; i < 3; ++i) evaluations.push_back(evaluation("level1/2", 1.0, i));
  const auto summary = summarize(evaluations)[0];
  ASSERT_EQ(summary.pass_at_k.size(), 3u);  // the smallest number of samples
  EXPECT_NEAR(summary.pass_at_k.at(1), (0.25 + 1) / 2, 1e-12);
  EXPECT_NEAR(summary.pass_at_k.at(2), (0.5 + 1) / 2, 1e-12);  // 1 − C(3,2)/C(4,2)
  EXPECT_NEAR(summary.pass_at_k.at(3), (0.75 + 1) / 2, 1e-12);
  std::vector<Evaluation> many;
  for (int i = 0; i < 30; ++i) many.push_back(evaluation("level1/1", std::nullopt, i));
  EXPECT_EQ(summarize(many)[0].pass_at_k.size(), 10u);
  EXPECT_EQ(summarize(many)[0].pass_at_k.at(10), 0);
}

TEST(Bootstrap, IsReproducibleAndCoversTheFraction) {
  std::vector<std::vector<bool>> hits;
  for (int i = 0; i < 100; ++i) hits.push_back({i % 4 == 0, true, false});
  const auto first = bootstrap_fractions(hits, 3);
  const auto second = bootstrap_fractions(hits, 3);
  EXPECT_EQ(first[0].low, second[0].low);
  EXPECT_EQ(first[0].high, second[0].high);
  // The normal approximation: 0.25 ± 1.96·sqrt(0.25·0.75/100) = 0.165–0.335.
  EXPECT_NEAR(first[0].low, 0.165, 0.015);
  EXPECT_NEAR(first[0].high, 0.335, 0.015);
  EXPECT_EQ(first[1].low, 1);
  EXPECT_EQ(first[2].high, 0);
  EXPECT_EQ(bootstrap_fractions({}, 2).size(), 2u);
}

TEST(ToJson, HasEveryMember) {
  const auto json = to_json(summarize({evaluation("level1/1", 2.0)}));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["name"], "all");
  EXPECT_EQ(json[0]["fast_p"][3]["p"], 1.0);
  EXPECT_EQ(json[0]["fast_p"][3]["value"], 1.0);
  EXPECT_EQ(json[0]["fast_p"][3]["ci95"], nlohmann::json::parse("[1.0, 1.0]"));
  EXPECT_EQ(json[0]["pass_at_k"]["1"], 1.0);
  EXPECT_EQ(json[0]["verdicts"]["correct"], 1);
  EXPECT_TRUE(to_json(summarize({}))[0]["geomean_correct"].is_null());
}

TEST(ToText, IsAlignedAndOrdered) {
  const std::vector<Evaluation> evaluations = {evaluation("level1/19", 2.0),
                                               evaluation("level1/2", std::nullopt),
                                               evaluation("level2/1", 1.5)};
  std::vector<Evaluation> flagged = evaluations;
  flagged[0].flags = {"noisy", "launch_bound"};
  const std::string text = to_text(summarize(flagged), flagged);
  EXPECT_THAT(
      text,
      HasSubstr(
          "problem    sample  backend  verdict      speedup  95% interval  flags\n"
          "level1/2        0  cpp      wrong_value        -             -\n"
          "level1/19       0  cpp      correct        2.00x     1.90-2.10  noisy, launch_bound\n"
          "level2/1        0  cpp      correct        1.50x     1.42-1.58\n"));
  EXPECT_THAT(text,
              AllOf(HasSubstr("verdict      samples\ncorrect            2\nwrong_value        1\n"),
                    HasSubstr("verified_1")));
  EXPECT_THAT(text, Not(HasSubstr("pass@")));  // one sample a problem says nothing new
}

TEST(ToText, StrangersStringsCannotSteerATerminal) {
  Evaluation bad = evaluation(
      "a\x1b[31m\nb\x07\x7f\xc2\x9b"
      "1m\xe2\x80\xaeneu\xff\xe2\x80",
      2.0);
  bad.backend = std::string(500, 'x');
  bad.flags = {"\r\x1b]0;title\x07"};
  bad.verdict = "\xc3\xa4";
  const std::string text = to_text(summarize({bad}), {bad});
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    EXPECT_TRUE(byte == '\n' || (byte >= 0x20 && byte != 0x7f)) << static_cast<int>(byte);
  }
  EXPECT_THAT(text,
              AllOf(HasSubstr("a[31mb1mneu??"), HasSubstr("]0;title"), HasSubstr("xxx…"),
                    HasSubstr("ä"), Not(HasSubstr("\xe2\x80\xae")), Not(HasSubstr("\xc2\x9b"))));
}

}  // namespace
}  // namespace kb::score
