// extract_code() against arbitrary bytes: no crash, and what comes out is UTF-8 text with a reason.
#include <cstdlib>
#include <string_view>

#include "problem/text_file.h"
#include "prompt/extract.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using kb::problem::Backend;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto language : {Backend::python, Backend::cuda_cpp}) {
    const auto extraction = kb::prompt::extract_code(text, language);
    if (!extraction) {
      if (extraction.error().empty()) std::abort();
      continue;
    }
    if (!extraction->code.ends_with('\n')) std::abort();
    if (!kb::problem::is_utf8(extraction->code)) std::abort();
    if (extraction->code.find('\0') != std::string::npos) std::abort();
    const bool sure = extraction->how == kb::prompt::How::fenced;
    if (!sure && extraction->warnings.empty()) std::abort();
  }
  return 0;
}
