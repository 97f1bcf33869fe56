// What C++ and CUDA source says, as far as its text can tell: comments and literals are passed
// over, the preprocessor is not run.
#pragma once

#include <string_view>

namespace kb::problem {

/// True when `name` is an identifier of `source`. Linear.
bool has_identifier(std::string_view source, std::string_view name);

/// True when `source` includes a header of TVM-FFI: it is compiled with that package's headers, and
/// linked with its library. Linear.
bool includes_tvm_ffi(std::string_view source);

/// True when such a source is called as a TVM-FFI function, because it has no kb_run. Linear.
bool is_tvm_ffi_function(std::string_view source);

/// True when such a function's source exports `run`, by the macro or by its symbol. Linear.
bool exports_tvm_ffi_run(std::string_view source);

}  // namespace kb::problem
