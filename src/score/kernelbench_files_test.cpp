#include "score/kernelbench_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kb::score {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// As KernelBench's versions write it.
constexpr const char* kResults = R"({
  "19": [{"sample_id": 0, "compiled": true, "correctness": true,
          "metadata": {"hardware": "NVIDIA H100", "device": "0"},
          "runtime": 2.0, "runtime_stats": {"mean": 2.0, "std": 0.1, "num_trials": 100},
          "ref_runtime": 3.0},
         {"sample_id": 1, "compiled": true, "correctness": false,
          "metadata": {"runtime_error": "x", "max_difference": [NaN, -Infinity]},
          "runtime": -1.0, "runtime_stats": {}}],
  "2": {"sample_id": 0, "compiled": false, "correctness": false,
        "metadata": {"compilation_error": "an \"Infinity\" of \\"}, "runtime": -1.0},
  "3": [{"compiled": true, "correctness": true, "metadata": {"excessive_speedup": true},
         "runtime": NaN}, {"compiled": true, "correctness": false}]
})";

TEST(EvalResults, ReadsWhatKernelBenchWrites) {
  const auto evaluations = parse_eval_results(kResults, 1).value();
  ASSERT_EQ(evaluations.size(), 5u);
  EXPECT_EQ(evaluations[0].problem, "level1/19");
  EXPECT_EQ(evaluations[0].level, 1);
  EXPECT_TRUE(evaluations[0].correct);
  EXPECT_EQ(evaluations[0].verdict, "correct");
  EXPECT_EQ(evaluations[0].time_us, 2000);
  EXPECT_EQ(evaluations[0].speedup, 1.5);
  EXPECT_EQ(evaluations[0].conditions, "NVIDIA H100");
  EXPECT_FALSE(evaluations[0].verified_faster_than(0));  // no interval
  EXPECT_EQ(evaluations[1].sample, 1);
  EXPECT_EQ(evaluations[1].verdict, "runtime_error");
  EXPECT_EQ(evaluations[1].time_us, std::nullopt);
  EXPECT_EQ(evaluations[2].problem, "level1/2");
  EXPECT_EQ(evaluations[2].verdict, "compile_error");
  EXPECT_FALSE(evaluations[2].compiled);
  EXPECT_TRUE(evaluations[3].correct);
  EXPECT_EQ(evaluations[3].time_us, std::nullopt);
  EXPECT_EQ(evaluations[3].speedup, std::nullopt);
  EXPECT_THAT(evaluations[3].flags, ElementsAre("excessive_speedup"));
  EXPECT_EQ(evaluations[4].sample, 1);  // by its place
  EXPECT_EQ(evaluations[4].verdict, "wrong_value");
}

TEST(EvalResults, KeysMaySayTheLevel) {
  for (const char* key : {"level3/7", "3/7", "3_7", "level_3_problem_7"}) {
    const auto evaluations =
        parse_eval_results(std::string("{\"") + key + "\": [{\"correctness\": true}]}", 0);
    ASSERT_TRUE(evaluations) << evaluations.error();
    EXPECT_EQ((*evaluations)[0].problem, "level3/7");
  }
  EXPECT_EQ(parse_eval_results(R"({"7": {"1": {"correctness": true}}})", 2).value()[0].sample, 1);
}

TEST(EvalResults, RefusesWhatIsForeign) {
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"", "not JSON"},
           {"{\"1\": [", "not JSON"},
           {"[]", "not an object"},
           {"3", "not an object"},
           {"{\"accuracy\": 0.9}", "`accuracy` is no problem's number"},
           {"{\"0\": []}", "`0`"},
           {"{\"-1\": []}", "`-1`"},
           {"{\"1\": 5}", "level1/1"},
           {"{\"1\": {\"score\": {}}}", "level1/1"},
           {"{\"1\": [{\"correctness\": \"yes\"}]}", "true or false"},
           {"{\"1\": [{\"correctness\": true, \"compiled\": 1}]}", "`compiled`"},
           {"{\"1\": [{\"correctness\": true, \"runtime\": \"fast\"}]}", "`runtime`"},
           {"{\"1\": [{\"correctness\": true, \"sample_id\": -1}]}", "`sample_id`"},
           {"{\"1\": [{\"correctness\": true, \"sample_id\": 1.5}]}", "`sample_id`"},
           {"{\"1\": [], \"1\": []}", "twice"},
           {"{\"1\": [{\"sample_id\": 3, \"correctness\": true}, {\"sample_id\": 3, "
            "\"correctness\": false}]}",
            "sample 3 of problem level1/1 twice"}}) {
    const auto evaluations = parse_eval_results(text, 1);
    ASSERT_FALSE(evaluations) << text;
    EXPECT_THAT(evaluations.error(), HasSubstr(says)) << text;
  }
  EXPECT_THAT(parse_eval_results(R"({"1": []})", 0).error(), HasSubstr("--level"));
}

TEST(EvalResults, EndsOnAnyBytes) {
  const std::string whole = kResults;
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_eval_results(whole.substr(0, size), 1)) << size;
  EXPECT_FALSE(parse_eval_results(std::string(100'000, '['), 1));
  EXPECT_FALSE(parse_eval_results("{\"\x1b[31m\": []}", 1));
  EXPECT_FALSE(parse_eval_results("\"\\", 1));
}

TEST(EvalResults, WhatWasNotCompiledIsNotCorrect) {
  const auto evaluation =
      parse_eval_results(R"({"1": [{"compiled": false, "correctness": true}]})", 1).value()[0];
  EXPECT_FALSE(evaluation.correct);
  EXPECT_EQ(evaluation.verdict, "compile_error");
}

TEST(PassAtK, ReadsAverages) {
  EXPECT_THAT(parse_pass_at_k(R"({"metadata": {"total_problems": 2},
                                  "averages": {"avg_pass@1": 0.25, "avg_pass@10": 0.5}})")
                  .value(),
              ElementsAre(Pair(1, 0.25), Pair(10, 0.5)));
  EXPECT_THAT(parse_pass_at_k(R"({"pass_at_k": {"pass@1": 1, "x": 2}})").value(),
              ElementsAre(Pair(1, 1)));
  EXPECT_FALSE(parse_pass_at_k("{}"));
  EXPECT_FALSE(parse_pass_at_k("[1]"));
  EXPECT_FALSE(parse_pass_at_k("{"));
}

TEST(Analysis, IsByThePublicRule) {
  auto evaluations = parse_eval_results(kResults, 1).value();
  // Ours rejected what the public rule accepts; and a verdict that tells nothing.
  evaluations[0].correct = false;
  evaluations[0].verdict = "wrong_value";
  Evaluation lost;
  lost.problem = "level2/1";
  lost.level = 2;
  lost.counts = false;
  lost.verdict = "infrastructure_error";
  evaluations.push_back(lost);
  Options options;
  options.thresholds = {0, 1, 1.5};
  options.set = {"level1/2", "level1/3", "level1/4", "level1/19"};
  options.samples = SampleRule::best;  // does not matter here
  const auto analysis = kernelbench_analysis(evaluations, options);
  EXPECT_EQ(analysis["level1"], nlohmann::ordered_json::parse(R"({
    "total": 4, "compiled": 2, "correct": 2, "geometric_mean_speedup": 1.5,
    "geometric_mean_speedup_faster": 1.5, "fast_p": {"0.0": 0.25, "1.0": 0.25, "1.5": 0.0},
    "pass_at_k": {"1": 0.25}})"))
      << analysis.dump(2);
}

}  // namespace
}  // namespace kb::score
