#include "judge/building.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "build/nvcc.h"
#include "digest/sha256.h"

namespace kb::judge {
namespace {

// Names, sizes and times of all files: what is built is built anew when one changes.
std::string digest_of_headers(const std::string& root) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(fs::path(root) / "include", error), end;
       !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (!it->is_regular_file(ignored)) continue;
    files.push_back(it->path().string() + ' ' + std::to_string(it->file_size(ignored)) + ' ' +
                    std::to_string(it->last_write_time(ignored).time_since_epoch().count()));
  }
  std::ranges::sort(files);
  std::string all = root;
  for (const auto& file : files) all += '\n' + file;
  return sha256_hex(all);
}

}  // namespace

std::expected<build::Result, std::string> build_candidate(build::Builder& builder,
                                                          const BuildTarget& target,
                                                          const problem::Problem& problem,
                                                          const problem::Candidate& candidate) {
  const auto& python = target.python;
  const build::TvmFfi tvm_ffi{python.tvm_ffi, python.version_of("apache-tvm-ffi")};
  switch (candidate.backend) {
    case problem::Backend::cpp: return builder.build_cpp(candidate.source, tvm_ffi);
    case problem::Backend::cuda_cpp:
      return builder.build_cuda(candidate.source, target.architecture, tvm_ffi);
    case problem::Backend::hip: return builder.build_hip(candidate.source, target.architecture);
    case problem::Backend::python: break;
  }
  const std::string thunderkittens = candidate.language == problem::Language::thunderkittens
                                         ? python.thunderkittens
                                         : std::string();
  std::string identity = "python " + python.python_version + " torch " + python.torch_version;
  if (!thunderkittens.empty()) identity += " thunderkittens " + digest_of_headers(thunderkittens);
  return builder.build_python(
      candidate.source,
      {.executable = python.executable,
       .folders = python.folders,
       .identity = identity,
       .package_folder = target.installation_root / "python",
       .architecture =
           build::is_architecture(target.architecture) ? target.architecture : std::string(),
       .thunderkittens = thunderkittens},
      problem.source);
}

}  // namespace kb::judge
