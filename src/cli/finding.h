// One line of what `doctor` finds.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "build/nvcc.h"
#include "worker/python_environment.h"

namespace kb::cli {

struct Finding {
  std::string what, detail;
  enum class State { ready, missing, note } state;
};

/// One for each language of Python candidates, and one for TVM-FFI: ready, or the one thing that is
/// missing. None makes a machine unfit.
std::vector<Finding> examine_languages(const worker::PythonEnvironment& python,
                                       const std::expected<build::Nvcc, std::string>& nvcc,
                                       bool has_gpu);

}  // namespace kb::cli
