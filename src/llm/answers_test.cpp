#include "llm/answers.h"

#include <gmock/gmock.h>

#include <fstream>

#include "llm/replay.h"

namespace kb::llm {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class AnswersTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "kb-answers-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  static Record record(const std::string& text) {
    Record one;
    one.answer.status = Status::answered;
    one.answer.text = text;
    one.answer.usage = Usage{10, 2, 30, 4};
    one.answer.cost_usd = 0.5;
    one.answer.cost_source = "prices";
    one.answer.attempts = {{Status::rate_limited, 429, 1.5, "slow down"},
                           {Status::answered, 200, 2, ""}};
    one.prompt_sha256 = "abc";
    one.about = {{"problem", "level1/19"}};
    return one;
  }

  fs::path root_;
};

TEST_F(AnswersTest, WhatIsPutIsFound) {
  const auto folder = AnswerFolder::open(root_ / "a" / "b", {{"model", "m"}});
  ASSERT_TRUE(folder) << folder.error();
  EXPECT_FALSE(folder->find("x")->has_value());
  const Record kept = record("caf\xc3\xa9\n\x01");
  ASSERT_TRUE(folder->put("x", kept));
  const auto found = folder->find("x");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ(to_json(**found), to_json(kept));
  EXPECT_EQ((*found)->about, kept.about);
  ASSERT_TRUE(folder->put_file("x_kernel.py", "code"));
  EXPECT_TRUE(folder->has_file("x_kernel.py"));
  for (const auto& entry : fs::recursive_directory_iterator(root_))
    EXPECT_NE(entry.path().extension(), ".part") << "nothing half-written is left";
}

TEST_F(AnswersTest, OneAtATimeAndTheSameConfiguration) {
  {
    const auto first = AnswerFolder::open(root_, {{"a", {{"t", 0.7}, {"m", "x"}}}, {"n", 1}});
    ASSERT_TRUE(first);
    EXPECT_THAT(AnswerFolder::open(root_, {{"a", 1}}).error(), HasSubstr("another kernelbench"));
  }
  EXPECT_TRUE(AnswerFolder::open(root_, {{"n", 1}, {"a", {{"m", "x"}, {"t", 0.7}}}}));
  EXPECT_THAT(AnswerFolder::open(root_, {{"a", {{"t", 0.9}, {"m", "x"}}}, {"n", 1}}).error(),
              HasSubstr("t is 0.7 there and 0.9 now"));
  EXPECT_THAT(AnswerFolder::open(root_, {{"a", {{"m", "x"}}}, {"n", 1}}).error(),
              HasSubstr("t is 0.7 there and not set now"));
}

TEST_F(AnswersTest, DamageIsSaid) {
  const auto folder = AnswerFolder::open(root_, nlohmann::json::object());
  for (const char* bad : {"", "{", "[]", "{}", R"({"status": "splendid"})"}) {
    std::ofstream(root_ / "answers" / "x.json") << bad;
    const auto found = folder->find("x");
    ASSERT_FALSE(found) << bad;
    EXPECT_THAT(found.error(),
                testing::AllOf(HasSubstr("x.json is damaged"), HasSubstr("move it away")));
  }
}

TEST_F(AnswersTest, AFolderThatCannotBe) {
  std::ofstream(root_ / "file") << "x";
  EXPECT_THAT(AnswerFolder::open(root_ / "file", {}).error(), HasSubstr("cannot be made"));
}

TEST_F(AnswersTest, Replay) {
  EXPECT_THAT(Replay::open(root_ / "none").error(), HasSubstr("there is no folder"));
  EXPECT_THAT(Replay::open(root_).error(), HasSubstr("no recorded answers"));
  ASSERT_TRUE(AnswerFolder::open(root_, {})->put("recorded", record("one")));
  std::ofstream(root_ / "answers" / "bare.md") << "two";
  std::ofstream(root_ / "answers" / "blank.md") << "\n";
  std::ofstream(root_ / "answers" / "broken.json") << "{";
  auto replay = Replay::open(root_);
  ASSERT_TRUE(replay) << replay.error();
  const auto ask = [&](const std::string& name) { return replay->ask({name, 0, {}}, {}); };
  EXPECT_EQ(ask("recorded").text, "one");
  EXPECT_EQ(ask("recorded").usage->output, 30);
  EXPECT_EQ(ask("bare").text, "two");
  EXPECT_EQ(name_of(ask("bare").status), "answered");
  EXPECT_EQ(name_of(ask("blank").status), "empty");
  EXPECT_EQ(name_of(ask("broken").status), "not_an_answer");
  EXPECT_EQ(name_of(ask("nobody").status), "not_recorded");
  EXPECT_TRUE(Replay::open(root_ / "answers"));
}

}  // namespace
}  // namespace kb::llm
