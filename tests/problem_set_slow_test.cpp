// The bundled problem set is fit to judge kernels by: every problem, as `problems check` sees it.

#include "run_command.h"

namespace {

TEST(ProblemSet, IsClean) {
  const auto outcome = kb::test::kernelbench({"problems", "check"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

TEST(ProblemSet, TablesInTheDocumentationAreCurrent) {
  ::setenv("KERNELBENCH", kb::test::binary().c_str(), 1);
  const auto outcome =
      kb::test::run_program(kb::test::source_folder() + "/scripts/problem-table", {"--check"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST(ProblemSet, HasEachProblemOfTheRepresentativeSubset) {
  const auto outcome =
      kb::test::kernelbench({"problems", "list", "--subset", "representative", "--json"});
  const auto json = nlohmann::json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(json.is_array()) << outcome.err;
  EXPECT_EQ(json.size(), 32u);
  for (const auto& problem : json) EXPECT_NE(problem.value("reason", ""), "") << problem;
}

}  // namespace
