// One line of what `doctor` finds.
#pragma once

#include <expected>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "build/build.h"
#include "build/nvcc.h"
#include "worker/python_environment.h"

namespace kb::cli {

struct Finding {
  std::string what, detail;
  enum class State { ready, missing, note } state;
  std::map<std::string, std::string> versions = {};  ///< of what it is about, where known
};

/// One for each language of Python candidates, and one for TVM-FFI: ready, or the one thing that is
/// missing; for HIP that of each way. None makes a machine unfit. `builder` proves what compiles
/// HIP; null does not.
std::vector<Finding> examine_languages(const worker::PythonEnvironment& python,
                                       const std::expected<build::Nvcc, std::string>& nvcc,
                                       build::Builder* builder, bool has_gpu);

/// When the device was measured and what came out, or how to measure it. `description` is
/// Device::describe()'s.
Finding examine_ceilings(const std::string& device, const nlohmann::json& description,
                         const std::string& torch_version);
/// Measures the devices (names as users write them), and stores the figures for later judgements.
/// UsageError where one cannot be had or measured.
void measure_and_store(const std::vector<std::string>& devices, const std::string& python_option);

}  // namespace kb::cli
