#include "check/check.h"

#include "problem/native_source.h"
#include "problem/python_tokens.h"

namespace kb::check {

std::optional<std::string> has_entry_point(const problem::Candidate& candidate) {
  const std::string& source = candidate.source;
  if (candidate.backend == problem::Backend::python) {
    if (problem::may_bind(source, "ModelNew")) return std::nullopt;
    return "the candidate defines no ModelNew; define it as a class ModelNew(nn.Module) that "
           "replaces the problem's Model";
  }
  // A name pasted together by the preprocessor is not seen by these scans.
  if (source.find("##") != std::string::npos) return std::nullopt;
  if (candidate.backend != problem::Backend::hip && problem::is_tvm_ffi_function(source)) {
    if (problem::exports_tvm_ffi_run(source)) return std::nullopt;
    return "the candidate includes TVM-FFI and exports no function run; export it by "
           "TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, ...)";
  }
  if (problem::has_identifier(source, "kb_run")) return std::nullopt;
  return "the candidate defines no kb_run; export it as kernelbench/kernel.h declares it";
}

}  // namespace kb::check
