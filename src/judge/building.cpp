#include "judge/building.h"

#include <utility>

namespace kb::judge {

std::expected<build::Result, std::string> build_candidate(build::Builder& builder,
                                                          const BuildTarget& target,
                                                          const problem::Problem& problem,
                                                          const problem::Candidate& candidate) {
  switch (candidate.backend) {
    case problem::Backend::cpp: return builder.build_cpp(candidate.source);
    case problem::Backend::cuda_cpp:
      return builder.build_cuda(candidate.source, target.architecture);
    case problem::Backend::python: break;
  }
  const auto& python = target.python;
  return builder.build_python(
      candidate.source,
      {.executable = python.executable,
       .folders = python.folders,
       .identity = "python " + python.python_version + " torch " + python.torch_version,
       .package_folder = target.installation_root / "python",
       .architecture = target.architecture},
      problem.source);
}

}  // namespace kb::judge
