// The bundled problem set is fit to judge kernels by: every problem, as `problems check` sees it.

#include "run_command.h"

namespace {

TEST(ProblemSet, IsClean) {
  const auto outcome = kb::test::kernelbench({"problems", "check"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

}  // namespace
