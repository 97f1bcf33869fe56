#include "refine/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kb::refine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const prompt::Library& library() {
  static const auto loaded = prompt::Library::load(KERNELBENCH_SOURCE_DIR).value();
  return loaded;
}

Conversation conversation() {
  return {library(), {.backend = "cpp"}, {.system = "You write kernels.", .user = "Write one."}};
}

nlohmann::json result(const std::string& verdict, bool compiled = true) {
  return {{"verdict", verdict}, {"compiled", compiled}};
}

nlohmann::json timed(double speedup, double low, double high) {
  return {{"verdict", "correct"},
          {"compiled", true},
          {"speedup", speedup},
          {"speedup_ci95", {low, high}}};
}

TEST(Merit, CorrectBeforeCompiledBeforeTheRestThenByTheLowerEnd) {
  EXPECT_LT(merit_of(result("static_reject", false)), merit_of(result("wrong_value")));
  EXPECT_LT(merit_of(result("wrong_value")), merit_of(result("correct")));
  EXPECT_LT(merit_of(result("wrong_value")), merit_of(timed(0.1, 0.09, 0.11)));
  EXPECT_LT(merit_of(timed(3, 1.1, 5)), merit_of(timed(1.3, 1.2, 1.4)));
  EXPECT_EQ(merit_of(result("timeout")), merit_of(result("wrong_value")));
  auto fast_and_wrong = timed(9, 8, 10);
  fast_and_wrong["verdict"] = "wrong_value";
  EXPECT_EQ(merit_of(fast_and_wrong), merit_of(result("wrong_value")));
}

TEST(Conversation, TheModelSeesItsKernelsAndTheirJudgements) {
  auto talk = conversation();
  const auto first = talk.next().value();
  EXPECT_EQ(first.system, "You write kernels.");
  ASSERT_EQ(first.messages.size(), 1u);
  EXPECT_EQ(first.messages[0].text, "Write one.");

  auto failed = result("compile_error", false);
  failed["message"] = "kernel.cpp:3: error: 'y' was not declared";
  talk.add({"int one;\n", failed});
  talk.add({"", result("static_reject", false)});
  const auto next = talk.next().value();
  ASSERT_EQ(next.messages.size(), 5u);
  EXPECT_EQ(next.messages[1].from, llm::Message::From::model);
  EXPECT_EQ(next.messages[1].text, "```cpp\nint one;\n```");
  EXPECT_EQ(next.messages[2].from, llm::Message::From::user);
  EXPECT_THAT(next.messages[2].text,
              AllOf(StartsWith("Your kernel was judged."), HasSubstr("'y' was not declared"),
                    Not(HasSubstr("This is the source")), Not(HasSubstr("int one;"))));
  EXPECT_THAT(next.messages[3].text, HasSubstr("no kernel"));
}

TEST(Conversation, AProfileOfTheResultIsTold) {
  auto talk = conversation();
  auto profiled = timed(2, 1.9, 2.1);
  profiled["profile"] = {{"dram_percent", 41.5}};
  talk.add({"int one;\n", profiled});
  EXPECT_THAT(talk.next().value().messages[2].text, HasSubstr("dram_percent"));
}

TEST(Conversation, AResultThatIsNoneIsAnError) {
  auto talk = conversation();
  talk.add({"int one;\n", {{"verdict", "splendid"}}});
  EXPECT_FALSE(talk.next());
}

TEST(Conversation, KeepsTheBestAndOfEqualsTheEarliest) {
  auto talk = conversation();
  talk.add({"a", result("compile_error", false)});
  EXPECT_EQ(talk.best(), 0u);
  talk.add({"b", timed(1.5, 1.4, 1.6)});
  talk.add({"c", timed(1.5, 1.4, 1.6)});
  talk.add({"d", result("wrong_value")});
  EXPECT_EQ(talk.best(), 1u);
  EXPECT_EQ(talk[talk.best()].code, "b");
  EXPECT_EQ(talk.turns(), 4u);
}

TEST(Conversation, TheTargetIsReachedByTheWholeInterval) {
  auto talk = conversation();
  EXPECT_FALSE(talk.reached({}));
  talk.add({"a", result("wrong_value")});
  EXPECT_FALSE(talk.reached({.timed = false}));
  talk.add({"b", timed(1.5, 0.9, 2)});
  EXPECT_FALSE(talk.reached({.speedup = 1}));
  EXPECT_TRUE(talk.reached({.speedup = 0.9}));
  EXPECT_TRUE(talk.reached({.timed = false}));
}

}  // namespace
}  // namespace kb::refine
