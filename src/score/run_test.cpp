#include "score/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "store/store.h"

namespace kb::score {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr const char* kOne = R"({"7": [{"sample_id": 0, "compiled": true, "correctness": true}]})";

class LoadRun : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "kb_run_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  void store(const std::string& problem, const std::string& json) {
    auto store = store::Store::open(folder_ / "kernelbench.db");
    ASSERT_TRUE(store);
    store::Row row;
    row.key = {problem, 0, "", "", "cpu", "{}"};
    row.verdict = "correct";
    row.result_json = json;
    ASSERT_TRUE(store->put(row));
  }
  std::string error(const fs::path& path, int level = 0) {
    const auto run = load_run(path, level);
    return run ? "no error" : run.error();
  }
  fs::path folder_;
};

TEST_F(LoadRun, PrefersOurDatabase) {
  store("level1/19", R"({"problem":"level1/19","backend":"cpp","verdict":"correct","correct":true,
                         "flags":[],"device":"cpu","precision":"fp32","size":"small"})");
  store("level1/2", R"({"problem":"level1/2","backend":"cpp","verdict":"correct","correct":true,
                        "flags":[],"device":"cpu","precision":"fp32","size":"public"})");
  write("eval_results.json", kOne);
  write("pass_at_k_results.json", "of another program");
  for (const fs::path& path : {folder_, folder_ / "", folder_ / "kernelbench.db"}) {
    const auto run = load_run(path, 0);
    ASSERT_TRUE(run) << run.error();
    EXPECT_EQ(run->name, folder_.filename().string());
    EXPECT_EQ(run->evaluations.size(), 2u);
    EXPECT_THAT(run->notes, ElementsAre(HasSubstr("cpu, fp32, public; cpu, fp32, small")));
  }
}

TEST_F(LoadRun, FindsTheLevel) {
  const fs::path file = write("eval_results.json", kOne);
  EXPECT_THAT(error(folder_), HasSubstr("--level"));
  EXPECT_EQ(load_run(folder_, 3)->evaluations[0].problem, "level3/7");
  EXPECT_EQ(load_run(file, 3)->evaluations[0].problem, "level3/7");
  write("generation_config.yaml", "run_name: a\nlevel: 4\nlevels: 3\n");
  EXPECT_EQ(load_run(folder_, 0)->evaluations[0].problem, "level4/7");
  write("level_2_problem_7_sample_0_kernel.py", "class ModelNew: pass");
  EXPECT_EQ(load_run(folder_, 0)->evaluations[0].problem, "level2/7");
  write("level_1_problem_7_sample_0_kernel.py", "class ModelNew: pass");
  EXPECT_THAT(error(folder_), HasSubstr("--level"));
  EXPECT_EQ(load_run(folder_, 1)->evaluations[0].problem, "level1/7");
}

TEST_F(LoadRun, FilesByLevelAreOneRun) {
  write("eval_results_level1.json", kOne);
  write("eval_results_level3.json", kOne);
  write("eval_results_levelx.json", "{");
  const auto run = load_run(folder_, 0);
  ASSERT_TRUE(run) << run.error();
  ASSERT_EQ(run->evaluations.size(), 2u);
  EXPECT_EQ(run->evaluations[1].problem, "level3/7");
}

TEST_F(LoadRun, ReportsKernelBenchsOwnPassAtK) {
  write("eval_results.json", kOne);
  write("pass_at_k_results.json", R"({"averages": {"avg_pass@1": 0.5}})");
  EXPECT_THAT(load_run(folder_, 1)->reported_pass_at_k, ElementsAre(Pair(1, 0.5)));
  write("pass_at_k_results.json", "{");
  EXPECT_THAT(error(folder_, 1), HasSubstr("pass_at_k_results.json"));
}

TEST_F(LoadRun, BadRunsAreOneSentence) {
  EXPECT_THAT(error(folder_ / "none"), HasSubstr("there is no"));
  EXPECT_THAT(error(folder_), HasSubstr("kernelbench run"));
  EXPECT_FALSE(fs::exists(folder_ / "kernelbench.db")) << "looking must not make one";
  write("eval_results.json", "{}");
  EXPECT_THAT(error(folder_), HasSubstr("no result"));
  write("eval_results.json", "{\"accuracy\": 1}");
  EXPECT_THAT(error(folder_), HasSubstr("accuracy"));
  write("eval_results.json", "");
  EXPECT_THAT(error(folder_), HasSubstr("not JSON"));
  fs::remove(folder_ / "eval_results.json");
  fs::create_directory(folder_ / "eval_results.json");
  EXPECT_THAT(error(folder_), HasSubstr("not a regular file"));
  store("level1/1", "{}");
  EXPECT_THAT(error(folder_), HasSubstr("damaged"));
  write("other.db", std::string(200, 'x'));
  EXPECT_THAT(error(folder_ / "other.db"), HasSubstr("other.db"));
}

}  // namespace
}  // namespace kb::score
