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
    EXPECT_EQ(check(Backend::hip, source), std::nullopt) << source;
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

TEST(HasEntryPoint, TvmFfiNeedsRun) {
  const std::string include = "#include <tvm/ffi/function.h>\n";
  for (const char* source : {
           "TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, Run);",
           "extern \"C\" int __tvm_ffi_run(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);",
           "extern \"C\" int kb_run(const kb_call* c) { return 0; }",
           "#define EXPORT(name) int __tvm_ffi_##name()\nEXPORT(run);",
       }) {
    EXPECT_EQ(check(Backend::cpp, include + source), std::nullopt) << source;
    EXPECT_EQ(check(Backend::cuda_cpp, include + source), std::nullopt) << source;
  }
  EXPECT_THAT(
      check(Backend::hip, include + "TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, Run);").value_or(""),
      testing::HasSubstr("defines no kb_run"));
  for (const char* source : {
           "void run() {}",
           "TVM_FFI_DLL_EXPORT_TYPED_FUNC(walk, Walk);",
           "// TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);",
       })
    EXPECT_THAT(check(Backend::cpp, include + source).value_or(""),
                testing::HasSubstr("exports no function run"))
        << source;
  EXPECT_THAT(check(Backend::cpp, "TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, Run);").value_or(""),
              testing::HasSubstr("kb_run"));
}

}  // namespace
}  // namespace kb::check
