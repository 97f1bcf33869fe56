#include "report/document.h"

#include <gmock/gmock.h>

#include <cmath>

namespace kb::report {
namespace {

using testing::ElementsAre;
using Json = nlohmann::json;

score::Evaluation evaluation(const std::string& problem, int sample, double speedup,
                             std::vector<std::string> flags = {}) {
  score::Evaluation made;
  made.problem = problem;
  made.level = score::level_of(problem);
  made.sample = sample;
  made.backend = "cpp";
  made.verdict = "correct";
  made.compiled = made.correct = true;
  made.flags = std::move(flags);
  made.speedup = speedup;
  made.ci_low = speedup * 0.9;
  made.ci_high = speedup * 1.1;
  return made;
}

Document document_of(const std::vector<score::Evaluation>& evaluations,
                     const Details& details = {}) {
  const score::Options options;
  const auto summaries = score::summarize(evaluations, options);
  return make_document({.run = "a run",
                        .tool = "kernelbench",
                        .rule = "own",
                        .evaluations = evaluations,
                        .summaries = summaries,
                        .options = options,
                        .details = details,
                        .notes = {"a note"},
                        .problem_names = {{"level1/2", "Matmul"}},
                        .flag_meanings = {{"noisy", "wide"}, {"other", "unused"}}});
}

TEST(Document, ListsSamplesInOrderWithWhatTheTableShows) {
  const auto document = document_of({evaluation("level1/19", 0, 2, {"noisy"}),
                                     evaluation("level1/2", 1, 3, {"reduced_precision"}),
                                     evaluation("level1/2", 0, 0.5)});
  const auto& rows = document.run["samples"];
  ASSERT_EQ(rows.size(), 3u);
  ASSERT_EQ(document.samples.size(), 3u);
  EXPECT_EQ(rows[0]["key"], "level1/2/0");
  EXPECT_EQ(rows[1]["key"], "level1/2/1");
  EXPECT_EQ(rows[2]["key"], "level1/19/0");
  EXPECT_EQ(rows[0]["name"], "Matmul");
  EXPECT_EQ(rows[2]["name"], "");
  EXPECT_EQ(rows[0]["speedup"], 0.5);
  EXPECT_THAT(rows[0]["ci95"], ElementsAre(0.45, 0.55));
  EXPECT_EQ(rows[1]["clean"], false);
  EXPECT_EQ(rows[2]["clean"], true) << "noisy only explains";
  EXPECT_EQ(document.run["flags"], Json({{"noisy", "wide"}})) << "only those that occur";
  EXPECT_THAT(document.run["notes"], ElementsAre("a note"));
  EXPECT_FALSE(document.run.contains("judged"));
  EXPECT_TRUE(document.samples[0]["result"].is_null());
}

TEST(Document, WhatIsNotFiniteIsNull) {
  auto odd = evaluation("level1/1", 0, std::nan(""));
  odd.ci_low = -INFINITY;
  const auto document = document_of({odd});
  EXPECT_TRUE(document.run["samples"][0]["speedup"].is_null());
  EXPECT_TRUE(document.run["samples"][0]["ci95"].is_null());
}

TEST(Document, TheCurveAgreesWithTheScoresAndReachesTheFastest) {
  const auto document =
      document_of({evaluation("level1/1", 0, 20), evaluation("level1/2", 0, 1.5)});
  const auto& curve = document.run["curves"][0];
  EXPECT_EQ(curve["name"], "all");
  double before = 1;
  bool has_one = false;
  for (const auto& point : curve["points"]) {
    ASSERT_EQ(point.size(), 7u);
    const double p = point[0], value = point[1];
    EXPECT_LE(value, before) << p;
    EXPECT_LE(point[2], point[1]);
    EXPECT_GE(point[3], point[1]);
    EXPECT_LE(point[4], point[1]) << "verified";
    before = value;
    if (std::abs(p - 1) < 1e-9) {
      has_one = true;
      EXPECT_EQ(value, 1);
    }
    if (std::abs(p - std::pow(10, 0.5)) < 1e-9) {
      EXPECT_EQ(value, 0.5);
    }
  }
  EXPECT_TRUE(has_one);
  EXPECT_EQ(before, 0) << "beyond the fastest there is none";
}

TEST(Document, TakesSeedsAsWordsAndMessagesCutBetweenCharacters) {
  Details details;
  auto& detail = details[{"level1/1", 0}];
  std::string message(199, 'a');
  message += "\xc3\xa4 and more";
  detail.result = {{"message", message},
                   {"trials", {{{"seed", 9223372036854775807u}}, {{"seed", "?"}}, 3}},
                   {"device_info", {{"name", "NVIDIA H200"}}}};
  detail.finished_at = "2026-01-02T03:04:05Z";
  auto judged = evaluation("level1/1", 0, 2);
  judged.conditions = "cuda, fp32";
  const auto document = document_of({judged}, details);
  EXPECT_THAT(document.samples[0]["seeds"], ElementsAre("9223372036854775807", "", ""));
  EXPECT_EQ(document.run["samples"][0]["message"], std::string(199, 'a'));
  EXPECT_THAT(document.run["conditions"], ElementsAre("cuda, fp32 (NVIDIA H200)"));
  EXPECT_EQ(document.run["judged"][0], "2026-01-02T03:04:05Z");
}

TEST(Roofline, TakesACardsCeilingsByPrecision) {
  const Json result = {
      {"device_info", {{"name", "NVIDIA H200"}}},
      {"precision", "fp32"},
      {"work", {{"bytes", 2e9}, {"operations", 1e11}, {"copy_bytes_per_s", 3e12}}}};
  const auto roofs = roofline(result);
  EXPECT_EQ(roofs["intensity"], 50);
  EXPECT_GT(roofs["memory_bytes_per_s"], 4e12) << "the datasheet's, and not the copy's";
  ASSERT_EQ(roofs["ceilings"].size(), 2u);
  EXPECT_LT(roofs["ceilings"][0]["operations_per_s"], roofs["ceilings"][1]["operations_per_s"]);
}

TEST(Roofline, TakesWhatWasMeasuredHereBeforeADatasheet) {
  Json result = {{"device_info", {{"name", "NVIDIA H200"}}},
                 {"precision", "fp32"},
                 {"work",
                  {{"bytes", 2e9},
                   {"operations", 1e11},
                   {"copy_bytes_per_s", 3e12},
                   {"measured", {{"operations_per_s", {{"fp32", 5e13}, {"fp16", 7e14}}}}}}}};
  auto roofs = roofline(result);
  EXPECT_EQ(roofs["memory_bytes_per_s"], 3e12);
  ASSERT_EQ(roofs["ceilings"].size(), 2u);
  EXPECT_EQ(roofs["ceilings"][0], (Json{{"name", "fp32, measured"}, {"operations_per_s", 5e13}}));
  EXPECT_EQ(roofs["ceilings"][1]["name"], "tf32, tensor cores") << "which was not measured";

  result["device_info"]["name"] = "AMD EPYC";
  result["precision"] = "fp16";
  roofs = roofline(result);
  ASSERT_EQ(roofs["ceilings"].size(), 1u);
  EXPECT_EQ(roofs["ceilings"][0]["operations_per_s"], 7e14);

  for (const Json& odd :
       {Json(nullptr), Json("5e13"), Json::array({5e13}), Json(1),
        Json{{"operations_per_s", "fast"}}, Json{{"operations_per_s", {{"fp16", -1}}}}}) {
    result["work"]["measured"] = odd;
    EXPECT_TRUE(roofline(result)["ceilings"].empty()) << odd;
  }
}

TEST(Roofline, GuessesNothing) {
  Json result = {{"device_info", {{"name", "AMD EPYC"}}},
                 {"precision", "fp32"},
                 {"work", {{"bytes", 2e9}, {"operations", nullptr}, {"copy_bytes_per_s", 5e10}}}};
  const auto roofs = roofline(result);
  EXPECT_FALSE(roofs.contains("intensity"));
  EXPECT_EQ(roofs["memory_bytes_per_s"], 5e10);
  EXPECT_TRUE(roofs["ceilings"].empty());

  result["work"]["bytes"] = 0;
  EXPECT_TRUE(roofline(result).is_null());
  result["work"] = "none";
  EXPECT_TRUE(roofline(result).is_null());
  result["work"] = {{"bytes", 1e9}};
  result["device_info"] = {1, 2};
  EXPECT_FALSE(roofline(result).contains("memory_bytes_per_s"));
  EXPECT_TRUE(roofline(Json()).is_null());
  EXPECT_TRUE(roofline(Json::object()).is_null());
}

}  // namespace
}  // namespace kb::report
