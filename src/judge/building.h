// Which build a candidate of each backend gets: one place, so that what `compile` has built ahead
// is what an evaluation looks for.
#pragma once

#include <expected>
#include <filesystem>
#include <string>

#include "build/build.h"
#include "problem/candidate.h"
#include "problem/problem.h"
#include "worker/python_environment.h"

namespace kb::judge {

struct BuildTarget {
  /// Used for Python candidates, and for native ones that include TVM-FFI.
  worker::PythonEnvironment python;
  std::filesystem::path installation_root;  ///< holds python/
  std::string architecture;                 ///< of the GPU, "sm_90" or "gfx942"; empty without one
};

/// Compiles what the candidate needs compiled. Error: one sentence, not the candidate's fault.
/// Thread-safe.
std::expected<build::Result, std::string> build_candidate(build::Builder& builder,
                                                          const BuildTarget& target,
                                                          const problem::Problem& problem,
                                                          const problem::Candidate& candidate);

}  // namespace kb::judge
