#include "problem/native_source.h"

#include <gtest/gtest.h>

#include <string>

namespace kb::problem {
namespace {

TEST(NativeSource, KnowsWhatIncludesTvmFfi) {
  for (const char* source : {
           "#include <tvm/ffi/function.h>",
           "#include \"tvm/ffi/c_api.h\"\n",
           "// it's\n  #  include\t<tvm/ffi/extra/c_env_api.h>",
           "/* a */ #include<tvm/ffi/tvm_ffi.h>",
           "#include <vector>\n#ifdef X\n#include <tvm/ffi/any.h>\n#endif",
       })
    EXPECT_TRUE(includes_tvm_ffi(source)) << source;
  for (const char* source : {
           "// #include <tvm/ffi/function.h>",
           "/* #include <tvm/ffi/function.h> */",
           "auto s = \"#include <tvm/ffi/function.h>\";",
           "auto s = R\"(#include <tvm/ffi/function.h>)\";",
           "include <tvm/ffi/function.h>",
           "#include <tvm/runtime/module.h>",
           "#include",
           "#",
           "",
       })
    EXPECT_FALSE(includes_tvm_ffi(source)) << source;
}

TEST(NativeSource, AKbRunOfItsOwnIsTheInterface) {
  const std::string include = "#include <tvm/ffi/function.h>\n";
  EXPECT_TRUE(is_tvm_ffi_function(include + "TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, f);"));
  EXPECT_TRUE(is_tvm_ffi_function(include + "// no kb_run\n"));
  EXPECT_FALSE(is_tvm_ffi_function(include + "extern \"C\" int kb_run(const kb_call*);"));
  EXPECT_FALSE(is_tvm_ffi_function("TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, f);"));
}

}  // namespace
}  // namespace kb::problem
