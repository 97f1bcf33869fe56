// The words of a judgement: exactly one verdict, any number of flags.
#pragma once

#include <string_view>

namespace kb::judge {

enum class Verdict {
  correct,
  static_reject,  ///< cannot be judged at all: no entry point
  compile_error,
  load_error,     ///< could not be imported, found or constructed
  runtime_error,  ///< raised, crashed, or ended early
  timeout,
  out_of_memory,
  wrong_shape,
  wrong_dtype,
  wrong_value,
  tampering,            ///< caught attacking the evaluation
  infrastructure_error  ///< ours; never counts against a candidate
};

constexpr std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::correct: return "correct";
    case Verdict::static_reject: return "static_reject";
    case Verdict::compile_error: return "compile_error";
    case Verdict::load_error: return "load_error";
    case Verdict::runtime_error: return "runtime_error";
    case Verdict::timeout: return "timeout";
    case Verdict::out_of_memory: return "out_of_memory";
    case Verdict::wrong_shape: return "wrong_shape";
    case Verdict::wrong_dtype: return "wrong_dtype";
    case Verdict::wrong_value: return "wrong_value";
    case Verdict::tampering: return "tampering";
    case Verdict::infrastructure_error: return "infrastructure_error";
  }
  return "infrastructure_error";
}

}  // namespace kb::judge
