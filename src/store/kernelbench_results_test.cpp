#include "store/kernelbench_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace kb::store {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Row make_row(const std::string& problem, int sample, const json& result) {
  Row row;
  row.key = {problem, sample, "", "", "cpu", "{}"};
  row.verdict = result.value("verdict", "correct");
  row.result_json = result.dump();
  return row;
}

const json kCorrect = {{"verdict", "correct"}, {"public", {{"compiled", true}, {"correct", true}}},
                       {"time_us", 1500.0},    {"reference_time_us", 3000},
                       {"trials", 40},         {"flags", {"noisy"}},
                       {"device", "cuda:0"},   {"message", ""}};

class KernelbenchResults : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "kb_results_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string text(const std::string& name) {
    std::ifstream stream(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::vector<std::string> names() {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_))
      found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }
  fs::path folder_;
};

TEST_F(KernelbenchResults, HasKernelBenchsMembers) {
  const auto written =
      write_kernelbench_results(folder_, {make_row("level1/19", 0, kCorrect)}).value();
  EXPECT_THAT(written.files, ElementsAre(folder_ / "eval_results.json"));
  EXPECT_THAT(written.notes, IsEmpty());
  const json expected = json::parse(R"({"19": [{
    "sample_id": 0, "compiled": true, "correctness": true,
    "metadata": {"evaluator": "kernelbench", "hardware": "cuda:0", "device": "cuda:0", "verdict": "correct", "flags": ["noisy"]},
    "runtime": 1.5, "runtime_stats": {"median": 1.5, "num_trials": 40},
    "ref_runtime": 3.0, "ref_runtime_stats": {"median": 3.0}}]})");
  EXPECT_EQ(json::parse(text("eval_results.json")), expected);
}

TEST_F(KernelbenchResults, HoldsThePublicVerdict) {
  // Ours rejects it (stress trials, say), the public rules accept it; and the other way round.
  json lenient = kCorrect;
  lenient["verdict"] = "wrong_value";
  lenient["correct"] = false;
  json strict = kCorrect;
  strict["public"]["correct"] = false;
  strict["message"] = "3 of 10 elements differ";
  strict["verdict"] = "wrong_value";
  json unbuilt = {{"verdict", "compile_error"},
                  {"compiled", false},
                  {"correct", false},
                  {"message", "no such file"},
                  {"time_us", nullptr}};
  json crashed = {{"verdict", "runtime_error"},
                  {"public", {{"compiled", true}, {"correct", false}}},
                  {"message", "it crashed"}};
  ASSERT_TRUE(write_kernelbench_results(
      folder_, {make_row("level1/1", 0, lenient), make_row("level1/1", 1, strict),
                make_row("level1/2", 0, unbuilt), make_row("level1/2", 1, crashed)}));
  const json results = json::parse(text("eval_results.json"));
  EXPECT_EQ(results["1"][0]["correctness"], true);
  EXPECT_EQ(results["1"][0]["runtime"], 1.5);
  EXPECT_EQ(results["1"][1]["correctness"], false);
  EXPECT_EQ(results["1"][1]["runtime"], -1.0);
  EXPECT_EQ(results["1"][1]["runtime_stats"], json::object());
  EXPECT_EQ(results["1"][1]["metadata"]["correctness_issue"], "3 of 10 elements differ");
  EXPECT_EQ(results["2"][0]["compiled"], false);
  EXPECT_EQ(results["2"][0]["metadata"]["compilation_error"], "no such file");
  EXPECT_EQ(results["2"][0]["ref_runtime"], -1.0);
  EXPECT_EQ(results["2"][1]["metadata"]["runtime_error"], "it crashed");
}

TEST_F(KernelbenchResults, IsInOrderOfNumberAndSample) {
  ASSERT_TRUE(write_kernelbench_results(
      folder_, {make_row("level1/19", 1, kCorrect), make_row("level1/19", 0, kCorrect),
                make_row("level1/2", 0, kCorrect)}));
  const std::string bytes = text("eval_results.json");
  EXPECT_LT(bytes.find("\"2\""), bytes.find("\"19\""));
  EXPECT_EQ(json::parse(bytes)["19"][0]["sample_id"], 0);
}

TEST_F(KernelbenchResults, SeveralLevelsGetAFileEach) {
  ASSERT_TRUE(write_kernelbench_results(folder_, {make_row("level1/19", 0, kCorrect)}));
  const auto written = write_kernelbench_results(folder_, {make_row("level1/19", 0, kCorrect),
                                                           make_row("level2/1", 0, kCorrect)})
                           .value();
  EXPECT_THAT(written.files, ElementsAre(folder_ / "eval_results_level1.json",
                                         folder_ / "eval_results_level2.json"));
  // The file of the run when it had one level would contradict them.
  EXPECT_THAT(names(), ElementsAre("eval_results_level1.json", "eval_results_level2.json"));
}

TEST_F(KernelbenchResults, BadRowsAreLeftOutWithANote) {
  Row garbage = make_row("level1/3", 2, kCorrect);
  garbage.result_json = "{\"public\": ";
  Row deep = garbage;
  deep.result_json = std::string(1'000'000, '[');
  Row not_utf8 = make_row("level1/4", 0, kCorrect);
  not_utf8.result_json = "{\"message\":\"\xff\"}";
  Row odd = make_row("level1/5", 0, {{"public", {{"compiled", "yes"}, {"correct", 1}}}});
  const auto written = write_kernelbench_results(
                           folder_, {garbage, deep, not_utf8, odd, make_row("my.py", 0, kCorrect),
                                     make_row("level1/6", 0, {{"verdict", "infrastructure_error"}}),
                                     make_row("level1/7", 0, kCorrect)})
                           .value();
  EXPECT_EQ(written.notes.size(), 5u);
  EXPECT_THAT(written.notes[0], HasSubstr("level1/3 sample 2"));
  EXPECT_THAT(written.notes[4], HasSubstr("my.py"));
  EXPECT_EQ(json::parse(text("eval_results.json")).size(), 1u);
}

TEST_F(KernelbenchResults, OddTimesAreNotMeasured) {
  json result = kCorrect;
  for (const json& time : {json(-5), json(0), json(nullptr), json("fast"), json::array()}) {
    result["time_us"] = time;
    ASSERT_TRUE(write_kernelbench_results(folder_, {make_row("level1/1", 0, result)}));
    EXPECT_EQ(json::parse(text("eval_results.json"))["1"][0]["runtime"], -1.0) << time;
  }
}

TEST_F(KernelbenchResults, KeepsAFileOfKernelBench) {
  const std::string theirs =
      R"({"19": [{"sample_id": 0, "compiled": true, "correctness": false, "metadata": {}}]})";
  std::ofstream(folder_ / "eval_results.json") << theirs;
  const auto first =
      write_kernelbench_results(folder_, {make_row("level1/19", 0, kCorrect)}).value();
  EXPECT_EQ(text("eval_results.original.json"), theirs);
  EXPECT_THAT(first.notes, ElementsAre(HasSubstr("kept as eval_results.original.json")));
  // Ours is replaced without a word.
  const auto second =
      write_kernelbench_results(folder_, {make_row("level1/19", 0, kCorrect)}).value();
  EXPECT_THAT(second.notes, IsEmpty());
  // A second foreign file does not overwrite the first.
  std::ofstream(folder_ / "eval_results.json") << "not JSON";
  ASSERT_TRUE(write_kernelbench_results(folder_, {make_row("level1/19", 0, kCorrect)}));
  EXPECT_THAT(names(), ElementsAre("eval_results.json", "eval_results.original.json",
                                   "eval_results.original1.json"));
}

TEST_F(KernelbenchResults, SaysWhenItCannotWrite) {
  const auto written =
      write_kernelbench_results(folder_ / "none", {make_row("level1/19", 0, kCorrect)});
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error(), HasSubstr("cannot be written"));
  EXPECT_TRUE(write_kernelbench_results(folder_, {}).value().files.empty());
  EXPECT_THAT(names(), IsEmpty());
}

}  // namespace
}  // namespace kb::store
