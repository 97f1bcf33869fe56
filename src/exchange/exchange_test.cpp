#include "exchange/exchange.h"

#include <gmock/gmock.h>

namespace {

using namespace kb::exchange;  // NOLINT: a test's own subject
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string code(const std::string& more = "") {
  return "class Model: pass\ndef get_inputs(): return []\n" + more;
}

Row row(std::optional<std::int64_t> level, std::optional<std::int64_t> number, std::string name,
        std::string text = code()) {
  return {.where = "r",
          .code = std::move(text),
          .level = level,
          .number = number,
          .name = std::move(name)};
}

std::string refusal(Row bad) {
  const auto import = accept(std::vector{std::move(bad)});
  EXPECT_THAT(import.accepted, IsEmpty());
  return import.refused.empty() ? "" : import.refused.front();
}

TEST(Accept, TakesIdsFromTheColumnsAndElseFromTheName) {
  const auto import =
      accept(std::vector{row(2, 7, "7_Gemm"), row(1, std::nullopt, "19_ReLU.py", code("a = 1")),
                         row(1, 3, "Tanh", code("a = 2")), row(1, 4, "", code("a = 3"))});
  ASSERT_THAT(import.accepted, SizeIs(4));
  EXPECT_THAT(import.refused, IsEmpty());
  EXPECT_EQ(import.accepted[0].file_name, "3_Tanh.py");
  EXPECT_EQ(import.accepted[1].file_name, "4_problem.py");
  EXPECT_EQ(import.accepted[2].file_name, "19_ReLU.py");
  EXPECT_EQ(import.accepted[3].id.text(), "level2/7");
}

TEST(Accept, WritesNothingOutsideOfTheSet) {
  const auto import = accept(
      std::vector{row(1, 1, "../../../etc/passwd"), row(1, 2, "a b\n\x1b/c", code("a = 1"))});
  EXPECT_EQ(import.accepted[0].file_name, "1_.._.._.._etc_passwd.py");
  EXPECT_EQ(import.accepted[1].file_name, "2_a_b___c.py");
}

TEST(Accept, NamesWhatItRefuses) {
  EXPECT_THAT(refusal(row(std::nullopt, 1, "1_A")), HasSubstr("r: it has no level"));
  EXPECT_THAT(refusal(row(1, std::nullopt, "A")), HasSubstr("problem_id"));
  EXPECT_THAT(refusal(row(1, 0, "0_A")), HasSubstr("count from 1"));
  EXPECT_THAT(refusal(row(0, 1, "1_A")), HasSubstr("count from 1"));
  EXPECT_THAT(refusal(row(1, 1LL << 40, "1_A")), HasSubstr("out of range"));
  EXPECT_THAT(refusal(row(1, 1, "1_A", "")), HasSubstr("no code"));
  EXPECT_THAT(refusal(row(1, 1, "1_A", "x = 1\n")), HasSubstr("defines no Model"));
  EXPECT_THAT(refusal(row(1, 1, "1_A", code("\xff"))), HasSubstr("not text"));
  EXPECT_THAT(refusal({.where = "w\x1b[2J", .problem = "cannot be read"}),
              HasSubstr("w?[2J: cannot be read"));
}

TEST(Accept, ReportsDuplicatesAndKeepsTheRest) {
  const auto import = accept(std::vector{row(1, 1, "A"), row(1, 2, "B", code("# a comment\n")),
                                         row(1, 1, "C", code("a = 1"))});
  EXPECT_THAT(import.accepted, SizeIs(2));
  EXPECT_THAT(import.duplicates, ElementsAre("level1/1 and level1/2 are the same program"));
  EXPECT_THAT(import.refused, ElementsAre(HasSubstr("level1/1 is r already")));
}

TEST(ParseRows, ReadsWhatTheHelperWrites) {
  const auto rows = parse_rows(
      R"({"row": "level_1[0]", "split": "level_1", "code": "x", "level": 1, "name": "1_A", "problem_id": 1})"
      "\n"
      R"({"row": "level_2[0]", "split": "level_2", "code": "x", "name": "1_A", "problem_id": "7"})"
      "\n"
      R"({"row": "rows[1]", "split": "rows", "level": "level_3", "problem_id": null})"
      "\n");
  ASSERT_TRUE(rows) << rows.error();
  ASSERT_THAT(*rows, SizeIs(3));
  EXPECT_EQ((*rows)[0].level, 1);
  EXPECT_EQ((*rows)[1].level, 2);
  EXPECT_EQ((*rows)[1].number, 7);
  EXPECT_EQ((*rows)[2].level, 3);
  EXPECT_EQ((*rows)[2].number, std::nullopt);
  EXPECT_FALSE(parse_rows("[1]\n"));
  EXPECT_FALSE(parse_rows("{\n"));
}

}  // namespace
