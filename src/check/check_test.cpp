#include "check/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kb::check {
namespace {

using problem::Backend;

std::optional<std::string> check(Backend backend, const std::string& source) {
  problem::Candidate candidate;
  candidate.backend = backend;
  candidate.source = source;
  return has_entry_point(candidate);
}

TEST(HasEntryPoint, PythonNeedsModelNew) {
  EXPECT_EQ(check(Backend::python, "class ModelNew(Model):\n    pass\n"), std::nullopt);
  EXPECT_EQ(check(Backend::python,
                  "try:\n    import triton\nexcept ImportError:\n    pass\nModelNew = Model\n"),
            std::nullopt);
  EXPECT_THAT(check(Backend::python, "class Model:\n    '''ModelNew = 1'''\n").value_or(""),
              testing::HasSubstr("ModelNew"));
}

TEST(HasEntryPoint, NativeNeedsKbRun) {
  for (const char* source : {
           "extern \"C\" int kb_run(const kb_call* c) { return 0; }",
           "/* x */ KB_EXPORT int kb_run(const kb_call*);",
           "// it's\nint kb_run();",
           "int a = 1'000'000; int kb_run();",
           "auto s = R\"(/* )\"; int kb_run();",
           "auto s = R\"x(\" )\" /* )x\"; int kb_run();",
           "auto s = \"http://x\"; int kb_run();",
           "char c = '\"'; int kb_run();",
           "#error don't\nint kb_run();",
           "auto s = LR\"no raw string\"; int kb_run();",
           "#define JOIN(a, b) a##b\nint JOIN(kb_, run)();",
       }) {
    EXPECT_EQ(check(Backend::cpp, source), std::nullopt) << source;
    EXPECT_EQ(check(Backend::cuda_cpp, source), std::nullopt) << source;
  }
  for (const char* source : {
           "int main() {}",
           "// kb_run\n",
           "/* kb_run",
           "auto s = \"kb_run\";",
           "int kb_run2(), my_kb_run();",
           "auto s = R\"(kb_run)\";",
           "\"",
           "'\\",
           "R\"",
           "R\"(",
           "",
           "/",
           "int x; // \\",
       }) {
    EXPECT_THAT(check(Backend::cpp, source).value_or(""), testing::HasSubstr("kb_run")) << source;
  }
}

}  // namespace
}  // namespace kb::check
