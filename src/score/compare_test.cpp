#include "score/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace kb::score {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Evaluation evaluation(int number, std::optional<double> speedup, int sample = 0,
                      double half_width = 0.05) {
  Evaluation result;
  result.problem = "level1/" + std::to_string(number);
  result.level = 1;
  result.sample = sample;
  result.backend = "cpp";
  result.correct = speedup.has_value();
  result.verdict = result.correct ? "correct" : "wrong_value";
  result.speedup = speedup;
  if (speedup) {
    result.ci_low = *speedup * (1 - half_width);
    result.ci_high = *speedup * (1 + half_width);
  }
  return result;
}

Run run_of(const std::string& name, std::vector<Evaluation> evaluations) {
  Run run;
  run.name = name;
  run.evaluations = std::move(evaluations);
  return run;
}

TEST(Compare, PairsByProblem) {
  const score::Run a = run_of(
      "a", {evaluation(1, 1.0), evaluation(2, 4.0), evaluation(3, std::nullopt), evaluation(4, 0.5),
            evaluation(5, std::nullopt), evaluation(6, 1.02), evaluation(7, 2.0)});
  const score::Run b = run_of(
      "b", {evaluation(1, 2.0), evaluation(2, 1.0), evaluation(3, 3.0), evaluation(4, std::nullopt),
            evaluation(5, std::nullopt), evaluation(6, 1.03), evaluation(8, 9.0)});
  const auto comparison = compare(a, b, {});
  ASSERT_EQ(comparison.problems.size(), 6u);
  EXPECT_THAT(comparison.attempted_by_base_alone, ElementsAre("level1/7"));
  EXPECT_THAT(comparison.attempted_by_other_alone, ElementsAre("level1/8"));
  const std::vector<Outcome> outcomes = {Outcome::faster,    Outcome::slower,  Outcome::only_other,
                                         Outcome::only_base, Outcome::neither, Outcome::faster};
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    EXPECT_EQ(comparison.problems[i].outcome, outcomes[i]) << i;
  EXPECT_TRUE(comparison.problems[0].clear);
  EXPECT_TRUE(comparison.problems[1].clear);
  EXPECT_FALSE(comparison.problems[5].clear);  // the intervals meet
  EXPECT_EQ(comparison.timed, 3);
  EXPECT_NEAR(comparison.ratio->value, std::cbrt(2.0 * 0.25 * 1.03 / 1.02), 1e-12);
  EXPECT_LE(comparison.ratio->ci95.low, comparison.ratio->value);
  EXPECT_GE(comparison.ratio->ci95.high, comparison.ratio->value);
  // fast_1: problem 2 only in a's favour at 4 against 1, which is not over 1; 1 and 3 in b's.
  EXPECT_EQ(comparison.fast_1.base_better, 1);
  EXPECT_EQ(comparison.fast_1.other_better, 2);
  EXPECT_EQ(comparison.fast_1.tied_yes, 1);
  EXPECT_EQ(comparison.fast_1.tied_no, 2);
  EXPECT_NEAR(comparison.fast_1.difference.value, 1.0 / 6, 1e-12);
  EXPECT_EQ(comparison.correct.base_better, 1);
  EXPECT_EQ(comparison.correct.other_better, 1);
  EXPECT_EQ(comparison.correct.p_value, 1);
}

TEST(Compare, ARunWithItselfIsEqual) {
  const score::Run a =
      run_of("a", {evaluation(1, 1.5), evaluation(2, std::nullopt), evaluation(3, 0.3)});
  const auto comparison = compare(a, a, {});
  EXPECT_EQ(comparison.ratio->value, 1);
  EXPECT_EQ(comparison.ratio->ci95.low, 1);
  EXPECT_EQ(comparison.ratio->ci95.high, 1);
  EXPECT_EQ(comparison.fast_1.base_better + comparison.fast_1.other_better, 0);
  EXPECT_EQ(comparison.problems[0].outcome, Outcome::equal);
}

// Pairing is the point: problems differ by far more than the two runs do.
TEST(Compare, PairedIntervalsIgnoreWhatProblemsShare) {
  std::vector<Evaluation> ours, theirs;
  for (int i = 1; i <= 20; ++i) {
    const double speedup = std::pow(2.0, i - 10);
    ours.push_back(evaluation(i, speedup));
    theirs.push_back(evaluation(i, speedup * (i % 2 == 0 ? 1.10 : 1.12)));
  }
  const auto comparison = compare(run_of("a", ours), run_of("b", theirs), {});
  EXPECT_GT(comparison.ratio->ci95.low, 1.09);
  EXPECT_LT(comparison.ratio->ci95.high, 1.13);
}

TEST(Compare, NothingInCommon) {
  const auto comparison =
      compare(run_of("a", {evaluation(1, 1.0)}), run_of("b", {evaluation(2, 1.0)}), {});
  EXPECT_TRUE(comparison.problems.empty());
  EXPECT_FALSE(comparison.ratio);
  EXPECT_EQ(comparison.fast_1.p_value, 1);
  EXPECT_THAT(to_report(comparison).text(), HasSubstr("on the 0 problems"));
  EXPECT_TRUE(to_json(comparison)["ratio"].is_null());
}

TEST(Compare, SamplesByTheRule) {
  const score::Run a = run_of("a", {evaluation(1, std::nullopt, 0), evaluation(1, 2.0, 1)});
  const score::Run b = run_of("b", {evaluation(1, 1.5, 0)});
  Options options;
  options.samples = SampleRule::first;
  EXPECT_EQ(compare(a, b, options).problems[0].outcome, Outcome::only_other);
  options.samples = SampleRule::best;
  EXPECT_EQ(compare(a, b, options).problems[0].outcome, Outcome::slower);
  options.samples = SampleRule::average;
  const auto average = compare(a, b, options);
  EXPECT_EQ(average.correct.other_better, 1);
  EXPECT_DOUBLE_EQ(average.correct.difference.value, 0.5);
}

TEST(Compare, SaysWhenConditionsDiffer) {
  score::Run a = run_of("a", {evaluation(1, 1.0)});
  score::Run b = a;
  a.evaluations[0].conditions = "cpu, fp32, small";
  EXPECT_TRUE(compare(a, b, {}).notes.empty());  // unknown
  b.evaluations[0].conditions = "cuda, fp32, public";
  EXPECT_THAT(compare(a, b, {}).notes, ElementsAre(HasSubstr("cuda, fp32, public")));
}

TEST(SignTest, IsExact) {
  EXPECT_EQ(sign_test(0, 0), 1);
  EXPECT_EQ(sign_test(3, 3), 1);
  EXPECT_NEAR(sign_test(0, 5), 2.0 / 32, 1e-12);
  EXPECT_NEAR(sign_test(5, 0), 2.0 / 32, 1e-12);
  EXPECT_NEAR(sign_test(1, 7), 2.0 * (1 + 8) / 256, 1e-12);
  // Against the count of all ways to toss ten coins.
  for (int heads = 0; heads <= 10; ++heads) {
    int extreme = 0;
    for (unsigned tosses = 0; tosses < 1024; ++tosses)
      extreme += std::popcount(tosses) <= std::min(heads, 10 - heads) ? 1 : 0;
    EXPECT_NEAR(sign_test(heads, 10 - heads), std::min(1.0, 2.0 * extreme / 1024), 1e-12) << heads;
  }
  EXPECT_LT(sign_test(0, 5000), 1e-100);
}

TEST(CompareOutput, HoldsTheNumbers) {
  const auto comparison =
      compare(run_of("a", {evaluation(1, 1.0), evaluation(2, 2.0)}),
              run_of("b\x1b[31m", {evaluation(1, 2.0), evaluation(2, std::nullopt)}), {});
  const std::string text = to_report(comparison).text();
  EXPECT_THAT(text, AllOf(HasSubstr("b[31m (other) against a (base), on the 2 problems"),
                          HasSubstr("level1/1  1.00x  2.00x  2.000  faster, clearly"),
                          HasSubstr("Solved by base alone (1): level1/2")));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  const auto json = to_json(comparison);
  EXPECT_EQ(json["outcomes"]["faster"], 1);
  EXPECT_EQ(json["outcomes"]["clearly_faster"], 1);
  EXPECT_EQ(json["outcomes"]["only_base"], 1);
  EXPECT_EQ(json["problems"][0]["ratio"], 2.0);
  EXPECT_EQ(json["problems"][1]["outcome"], "only_base");
  EXPECT_THAT(to_table({comparison}).csv(), HasSubstr("a,b[31m,level1/1,faster,true,1,1,1,2,2\n"));
}

}  // namespace
}  // namespace kb::score
