#include "report/detail.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "digest/sha256.h"
#include "store/store.h"

namespace kb::report {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

class DetailTest : public testing::Test {
 protected:
  DetailTest() {
    std::string pattern = (fs::temp_directory_path() / "kernelbench-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    folder_ = pattern;
  }
  ~DetailTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  void judge(const std::string& problem, const std::string& hash) {
    auto store = store::Store::open(folder_ / "kernelbench.db");
    ASSERT_TRUE(store);
    const nlohmann::json result = {{"problem", problem},
                                   {"backend", "cpp"},
                                   {"verdict", "correct"},
                                   {"correct", true},
                                   {"flags", nlohmann::json::array()},
                                   {"candidate_hash", hash}};
    store::Row row;
    row.key = {problem, 0, "", hash, "cpu", "{}"};
    row.verdict = "correct";
    row.result_json = result.dump();
    ASSERT_TRUE(store->put(row));
    auto evaluation = score::parse_evaluation(result.dump());
    ASSERT_TRUE(evaluation);
    evaluations_.push_back(*evaluation);
  }
  Detail detail(const std::string& problem) {
    const auto details = load_details(folder_, evaluations_);
    EXPECT_TRUE(details) << details.error();
    return details ? details->at({problem, 0}) : Detail();
  }

  fs::path folder_;
  std::vector<score::Evaluation> evaluations_;
};

TEST_F(DetailTest, TakesTheSourceThatWasJudgedWithItsEarlierTurns) {
  write("level_1_problem_2_sample_0_kernel.cpp", "third");
  write("level_1_problem_2_sample_0_turn_10.cpp", "second");
  write("level_1_problem_2_sample_0_turn_2.py", "first");
  write("level_1_problem_2_sample_0_turn_11.cpp", "third");  // the last turn is the sample itself
  write("level_1_problem_2_sample_0_turn_x.cpp", "no turn");
  write("level_1_problem_2_sample_1_turn_1.cpp", "another sample's");
  judge("level1/2", sha256_hex("third"));
  const auto found = detail("level1/2");
  ASSERT_TRUE(found.source);
  EXPECT_EQ(found.source->text, "third");
  EXPECT_EQ(found.source->file, "level_1_problem_2_sample_0_kernel.cpp");
  EXPECT_THAT(found.source_note, IsEmpty());
  EXPECT_EQ(found.result["verdict"], "correct");
  EXPECT_THAT(found.finished_at, HasSubstr("T"));
  ASSERT_EQ(found.earlier.size(), 2u);
  EXPECT_EQ(found.earlier[0].text, "first");
  EXPECT_EQ(found.earlier[1].text, "second");
}

TEST_F(DetailTest, ShowsNoOtherSourceThanTheOneThatWasJudged) {
  write("level_1_problem_2_sample_0_kernel.cpp", "new");
  judge("level1/2", sha256_hex("old"));
  judge("level1/3", sha256_hex("gone"));
  EXPECT_FALSE(detail("level1/2").source);
  EXPECT_THAT(detail("level1/2").source_note, HasSubstr("has changed since it was judged"));
  EXPECT_FALSE(detail("level1/3").source);
  EXPECT_THAT(detail("level1/3").source_note, HasSubstr("not in the run's folder"));
}

TEST_F(DetailTest, ARunOfKernelBenchsHasSourcesAlone) {
  write("level_1_problem_2_sample_0_kernel.py", "class ModelNew: pass");
  score::Evaluation evaluation;
  evaluation.problem = "level1/2";
  evaluations_ = {evaluation};
  const auto found = detail("level1/2");
  EXPECT_TRUE(found.result.is_null());
  ASSERT_TRUE(found.source);
  EXPECT_THAT(found.source_note, HasSubstr("does not say which version"));
}

TEST_F(DetailTest, ADamagedDatabaseIsOneSentence) {
  write("kernelbench.db", "this is no database, however long one looks at it");
  const auto details = load_details(folder_, {});
  ASSERT_FALSE(details);
  EXPECT_THAT(details.error(), HasSubstr("damaged"));
}

}  // namespace
}  // namespace kb::report
