#include "score/score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "score/bootstrap.h"
#include "score/problem_score.h"

namespace kb::score {
namespace {

using testing::AllOf;
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

std::string text_of(const std::vector<Summary>& summaries,
                    const std::vector<Evaluation>& evaluations) {
  return to_report(summaries, evaluations).text();
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
  ASSERT_EQ(summaries.size(), 4u);
  EXPECT_EQ(summaries[3].name, "cpp");
  EXPECT_EQ(summaries[3].kind, Summary::Kind::backend);
  EXPECT_EQ(summaries[3].problems, 5);
  EXPECT_EQ(summaries[0].name, "all");
  EXPECT_EQ(summaries[0].problems, 5);
  EXPECT_EQ(summaries[0].correct, 4);
  EXPECT_EQ(summaries[0].faster, 2);
  EXPECT_DOUBLE_EQ(fast(summaries[0], 0), 0.8);
  EXPECT_DOUBLE_EQ(fast(summaries[0], 0.5), 0.6);  // strictly more
  EXPECT_DOUBLE_EQ(fast(summaries[0], 1), 0.4);
  EXPECT_DOUBLE_EQ(fast(summaries[0], 2), 0.2);
  EXPECT_DOUBLE_EQ(fast(summaries[0], 5), 0);
  EXPECT_NEAR(summaries[0].geomean_correct->value, std::sqrt(2.0), 1e-12);
  EXPECT_NEAR(summaries[0].geomean_correct_and_faster->value, std::sqrt(8.0), 1e-12);
  EXPECT_EQ(summaries[1].name, "level1");
  EXPECT_EQ(summaries[1].problems, 3);
  EXPECT_EQ(summaries[2].name, "level2");
  EXPECT_EQ(summaries[2].geomean_correct.has_value(), false);
  EXPECT_EQ(summaries[0].verdicts,
            (std::map<std::string, int>{{"correct", 4}, {"wrong_value", 1}}));
}

TEST(Summarize, NothingIsNoProblem) {
  const auto summaries = summarize({});
  ASSERT_EQ(summaries.size(), 1u);
  EXPECT_EQ(summaries[0].problems, 0);
  EXPECT_EQ(fast(summaries[0], 1), 0);
  EXPECT_TRUE(summaries[0].pass_at_k.empty());
  EXPECT_THAT(text_of(summaries, {}), HasSubstr("all"));
}

// users.md 85: NaN samples classified as within budget.
TEST(Summarize, OddSpeedupsAreNeverFaster) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const double odd : {std::nan(""), kInf, -kInf, 0.0, -2.0}) {
    const auto summary = summarize({evaluation("level1/1", odd)})[0];
    EXPECT_EQ(summary.correct, 1);
    EXPECT_EQ(summary.faster, 0) << odd;
    EXPECT_EQ(summary.geomean_correct.has_value(), false) << odd;
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
  Evaluation doubted = evaluation("level1/9", 9.0);
  doubted.at_least = 0.9;
  Evaluation relied_on = evaluation("level1/10", 9.0);
  relied_on.at_least = 1.1;
  Evaluation no_interval = evaluation("level1/5", 9.0);
  no_interval.ci_low = no_interval.ci_high = std::nullopt;
  Evaluation nan_interval = evaluation("level1/6", 9.0);
  nan_interval.ci_low = std::nan("");
  Evaluation turned = evaluation("level1/7", 9.0);
  std::swap(turned.ci_low, turned.ci_high);
  Evaluation endless = evaluation("level1/8", 9.0);
  endless.ci_high = std::numeric_limits<double>::infinity();
  const auto summary = summarize({clear, touching, flagged, explained, no_interval, nan_interval,
                                  turned, endless, doubted, relied_on})[0];
  EXPECT_DOUBLE_EQ(fast(summary, 1), 1);
  EXPECT_DOUBLE_EQ(verified(summary, 1), 3.0 / 10);
  EXPECT_DOUBLE_EQ(verified(summary, 2), 1.0 / 10);
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
  EXPECT_THAT(text_of(summaries, evaluations), HasSubstr("1 speedup is self-reported"));
  EXPECT_THAT(text_of(summaries, {evaluations[1]}), Not(HasSubstr("self-reported")));
}

Options with_rule(SampleRule rule) {
  Options options;
  options.samples = rule;
  return options;
}

// Three samples of one problem, one of another; each number below is worked out by hand.
TEST(Summarize, SamplesCountByTheRule) {
  const std::vector<Evaluation> evaluations = {
      evaluation("level1/1", 9.0, 1), evaluation("level1/1", std::nullopt, 0),
      evaluation("level1/1", 0.6, 2), evaluation("level1/2", 4.0, 3)};
  const auto average = summarize(evaluations, with_rule(SampleRule::average))[0];
  EXPECT_EQ(average.problems, 2);
  EXPECT_EQ(average.samples, 4);
  EXPECT_EQ(average.correct, 2);
  EXPECT_EQ(average.faster, 2);
  EXPECT_DOUBLE_EQ(average.correct_rate.value, (2.0 / 3 + 1) / 2);
  EXPECT_DOUBLE_EQ(fast(average, 1), (1.0 / 3 + 1) / 2);
  EXPECT_DOUBLE_EQ(verified(average, 1), (1.0 / 3 + 1) / 2);
  EXPECT_NEAR(average.geomean_correct->value, std::sqrt(std::sqrt(9 * 0.6) * 4), 1e-12);
  EXPECT_NEAR(average.geomean_correct_and_faster->value, 6, 1e-12);

  const auto first = summarize(evaluations, with_rule(SampleRule::first))[0];
  EXPECT_EQ(first.correct, 1);  // a wrong sample 0 is not excused by a right sample 1
  EXPECT_DOUBLE_EQ(fast(first, 1), 0.5);
  EXPECT_NEAR(first.geomean_correct->value, 4, 1e-12);

  const auto best = summarize(evaluations, with_rule(SampleRule::best))[0];
  EXPECT_EQ(best.correct, 2);
  EXPECT_DOUBLE_EQ(fast(best, 5), 0.5);
  EXPECT_NEAR(best.geomean_correct->value, 6, 1e-12);
  EXPECT_THAT(text_of({best}, {}), HasSubstr("a problem's best counts"));
}

// The largest speedup may be the flagged one; another sample is then still verified.
TEST(Summarize, BestIsVerifiedByAnySample) {
  Evaluation flagged = evaluation("level1/1", 9.0, 0);
  flagged.flags = {"excessive_speedup"};
  const auto best =
      summarize({flagged, evaluation("level1/1", 2.0, 1)}, with_rule(SampleRule::best))[0];
  EXPECT_DOUBLE_EQ(fast(best, 5), 1);
  EXPECT_DOUBLE_EQ(verified(best, 1), 1);
  EXPECT_DOUBLE_EQ(verified(best, 5), 0);
}

TEST(Summarize, TheSetCountsInTheDenominator) {
  Options options;
  options.set = {"level1/1", "level1/2", "level1/3", "level2/1"};
  options.over = "public";
  const auto summaries =
      summarize({evaluation("level1/1", 2.0), evaluation("level1/9", 2.0)}, options);
  ASSERT_EQ(summaries.size(), 4u);
  EXPECT_EQ(summaries[0].problems, 5);
  EXPECT_EQ(summaries[0].attempted, 2);
  EXPECT_DOUBLE_EQ(fast(summaries[0], 1), 0.4);
  EXPECT_DOUBLE_EQ(summaries[0].pass_at_k.at(1).estimate->value, 0.4);
  EXPECT_EQ(summaries[1].name, "level1");
  EXPECT_EQ(summaries[1].problems, 4);
  EXPECT_EQ(summaries[2].name, "level2");  // chosen, though nobody attempted it
  EXPECT_EQ(summaries[2].problems, 1);
  EXPECT_EQ(fast(summaries[2], 0), 0);
  EXPECT_EQ(summaries[3].problems, 5);
  EXPECT_NEAR(summaries[0].geomean_correct->value, 2, 1e-12);
}

TEST(Summarize, BackendsHaveTheirOwnProblems) {
  Evaluation python = evaluation("level1/1", 3.0, 1);
  python.backend = "python";
  const auto summaries =
      summarize({evaluation("level1/1", 0.5), python, evaluation("level1/2", 2)});
  ASSERT_EQ(summaries.size(), 4u);
  EXPECT_EQ(summaries[2].name, "cpp");
  EXPECT_EQ(summaries[2].problems, 2);
  EXPECT_DOUBLE_EQ(fast(summaries[2], 1), 0.5);
  EXPECT_EQ(summaries[3].name, "python");
  EXPECT_EQ(summaries[3].problems, 1);
  EXPECT_DOUBLE_EQ(fast(summaries[3], 1), 1);
  EXPECT_THAT(text_of(summaries, {}), HasSubstr("python"));
}

TEST(Summarize, SaysWhatHasNoTime) {
  Evaluation untimed = evaluation("level1/1", 1.0);
  untimed.speedup = std::nullopt;
  const auto summaries = summarize({untimed, evaluation("level1/2", 2.0)});
  EXPECT_EQ(summaries[0].untimed, 1);
  EXPECT_EQ(summaries[0].correct, 2);
  EXPECT_DOUBLE_EQ(fast(summaries[0], 0), 0.5);
  EXPECT_THAT(text_of(summaries, {}), HasSubstr("1 problem is correct without a speedup"));
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
  EXPECT_THAT(text_of(summaries, {}), HasSubstr("2 samples were not judged"));
}

TEST(Summarize, PassAtK) {
  std::vector<Evaluation> evaluations;
  for (int i = 0; i < 4; ++i)
    evaluations.push_back(evaluation("level1/1", i == 3 ? std::optional(1.0) : std::nullopt, i));
  for (int i = 0; i < 3; ++i) evaluations.push_back(evaluation("level1/2", 1.0, i));
  const auto summary = summarize(evaluations)[0];
  ASSERT_EQ(summary.pass_at_k.size(), 3u);  // the smallest number of samples
  EXPECT_NEAR(summary.pass_at_k.at(1).estimate->value, (0.25 + 1) / 2, 1e-12);
  EXPECT_NEAR(summary.pass_at_k.at(2).estimate->value, (0.5 + 1) / 2, 1e-12);  // 1 − C(3,2)/C(4,2)
  EXPECT_NEAR(summary.pass_at_k.at(3).estimate->value, (0.75 + 1) / 2, 1e-12);
  EXPECT_EQ(summary.pass_at_k.at(3).problems, 2);
  std::vector<Evaluation> many;
  for (int i = 0; i < 30; ++i) many.push_back(evaluation("level1/1", std::nullopt, i));
  EXPECT_EQ(summarize(many)[0].pass_at_k.size(), 10u);
  EXPECT_EQ(summarize(many)[0].pass_at_k.at(10).estimate->value, 0);

  Options options;
  options.ks = {4, 5};
  const auto chosen = summarize(evaluations, options);
  EXPECT_NEAR(chosen[0].pass_at_k.at(4).estimate->value, 1, 1e-12);  // level1/1 alone has four
  EXPECT_EQ(chosen[0].pass_at_k.at(4).problems, 1);
  EXPECT_FALSE(chosen[0].pass_at_k.at(5).estimate);
  EXPECT_THAT(text_of(chosen, {}),
              AllOf(HasSubstr("1 of 2 problems have 4 samples"), HasSubstr("pass@5 -")));
  EXPECT_TRUE(to_json(chosen)[0]["pass_at_k"]["5"].is_null());
}

// Against every subset of k of n samples.
TEST(PassAt, IsTheShareOfSubsetsWithACorrectSample) {
  for (int n = 1; n <= 9; ++n) {
    for (int c = 0; c <= n; ++c) {
      for (int k = 1; k <= n; ++k) {
        int subsets = 0, hits = 0;
        for (unsigned mask = 0; mask < 1u << n; ++mask) {
          if (std::popcount(mask) != k) continue;
          ++subsets;
          hits += (mask & ((1u << c) - 1)) != 0 ? 1 : 0;  // the first c are correct
        }
        EXPECT_NEAR(pass_at(n, c, k), static_cast<double>(hits) / subsets, 1e-12)
            << n << ' ' << c << ' ' << k;
      }
    }
  }
}

TEST(Bootstrap, IsReproducibleAndCoversTheFraction) {
  std::vector<std::vector<double>> rows;
  for (int i = 0; i < 100; ++i) rows.push_back({i % 4 == 0 ? 1.0 : 0.0, 1, 0});
  const auto first = bootstrap_means(rows, 3);
  const auto second = bootstrap_means(rows, 3);
  EXPECT_EQ(first[0]->value, 0.25);
  EXPECT_EQ(first[0]->ci95.low, second[0]->ci95.low);
  EXPECT_EQ(first[0]->ci95.high, second[0]->ci95.high);
  // The normal approximation: 0.25 ± 1.96·sqrt(0.25·0.75/100) = 0.165–0.335.
  EXPECT_NEAR(first[0]->ci95.low, 0.165, 0.015);
  EXPECT_NEAR(first[0]->ci95.high, 0.335, 0.015);
  EXPECT_EQ(first[1]->ci95.low, 1);
  EXPECT_EQ(first[2]->ci95.high, 0);
  EXPECT_FALSE(bootstrap_means({}, 2).at(1));
}

// Of four rows all 4^4 resamples can be had; the percentiles of their means are the truth.
TEST(Bootstrap, AgreesWithEveryResample) {
  const std::vector<double> values = {0, 1, 3, 10};
  std::vector<double> means;
  for (int i = 0; i < 256; ++i)
    means.push_back((values[i % 4] + values[i / 4 % 4] + values[i / 16 % 4] + values[i / 64]) / 4);
  std::sort(means.begin(), means.end());
  std::vector<std::vector<double>> rows;
  for (const double value : values) rows.push_back({value});
  const auto estimate = bootstrap_means(rows, 1)[0];
  EXPECT_EQ(estimate->value, 3.5);
  // A step of the distribution wide: the seed decides on which side of one it ends.
  EXPECT_GE(estimate->ci95.low, means[2]);
  EXPECT_LE(estimate->ci95.low, means[11]);
  EXPECT_GE(estimate->ci95.high, means[255 - 11]);
  EXPECT_LE(estimate->ci95.high, means[255 - 2]);
}

TEST(Bootstrap, PassesOverWhatHasNoValue) {
  const double none = std::nan("");
  const auto estimates = bootstrap_means({{2, none}, {none, none}, {4, none}}, 2);
  EXPECT_EQ(estimates[0]->value, 3);
  EXPECT_EQ(estimates[0]->ci95.low, 2);
  EXPECT_EQ(estimates[0]->ci95.high, 4);
  EXPECT_FALSE(estimates[1]);
}

TEST(ProblemOrder, IsByNumber) {
  const ProblemLess less;
  for (const auto& [a, b] : std::vector<std::pair<std::string, std::string>>{
           {"level1/2", "level1/19"}, {"level2/1", "level10/1"}, {"level9/9", "a.py"}}) {
    EXPECT_TRUE(less(a, b)) << a;
    EXPECT_FALSE(less(b, a)) << a;
    EXPECT_FALSE(less(a, a)) << a;
  }
}

TEST(ToJson, HasEveryMember) {
  const auto json = to_json(summarize({evaluation("level1/1", 2.0)}));
  ASSERT_EQ(json.size(), 3u);
  EXPECT_EQ(json[0]["kind"], "all");
  EXPECT_EQ(json[2]["kind"], "backend");
  EXPECT_EQ(json[0]["sample_rule"], "average");
  EXPECT_EQ(json[0]["bootstrap"]["seed"], kSeed);
  EXPECT_EQ(json[0]["geomean_correct_ci95"], nlohmann::json::parse("[2.0, 2.0]"));
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
  const std::string text = text_of(summarize(flagged), flagged);
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
}

TEST(ToTable, IsOneNumberARow) {
  Evaluation formula = evaluation("level1/1", 2.0);
  formula.backend = "=cmd()";
  Options options;
  options.thresholds = {1};
  const std::string csv = to_table(summarize({formula}, options)).csv();
  EXPECT_THAT(csv, testing::StartsWith("group,metric,at,value,low,high,problems\n"
                                       "all,correct,,1,1,1,1\nall,fast_p,1,1,1,1,1\n"));
  EXPECT_THAT(csv, HasSubstr("\n'=cmd(),correct,"));
}

TEST(ToMarkdown, HoldsNoMarkupOfStrangers) {
  Evaluation bad = evaluation("<img src=x>|[a](http://b)`c`", 2.0);
  bad.verdict = "correct";
  const std::string text = to_report(summarize({bad}), {bad}).markdown();
  EXPECT_THAT(text, AllOf(HasSubstr("| p | fast\\_p |"), HasSubstr("| ---: |"),
                          HasSubstr("&lt;img src=x&gt;\\|\\[a\\](http\\://b)\\`c\\`"),
                          Not(HasSubstr("<img"))));
}

TEST(ToText, StrangersStringsCannotSteerATerminal) {
  Evaluation bad = evaluation(
      "a\x1b[31m\nb\x07\x7f\xc2\x9b"
      "1m\xe2\x80\xaeneu\xff\xe2\x80",
      2.0);
  bad.backend = std::string(500, 'x');
  bad.flags = {"\r\x1b]0;title\x07"};
  bad.verdict = "\xc3\xa4";
  const std::string text = text_of(summarize({bad}), {bad});
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
