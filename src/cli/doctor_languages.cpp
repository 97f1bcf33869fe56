// What a Python candidate's language needs of this machine, and what a .hip file does. Packages are
// known by their metadata: nothing is imported.

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <span>

#include "build/build.h"
#include "build/hip.h"
#include "cli/finding.h"
#include "cli/summary.h"
#include "device/cuda/cuda.h"
#include "problem/language.h"

namespace kb::cli {
namespace {

using problem::Language;

struct Need {
  std::vector<std::string_view> any_of;  ///< packages; the first is the one to install
  std::string_view install;              ///< what brings it
};

constexpr std::string_view kExtra = "run `make setup-dsl`";
constexpr std::string_view kSetup = "run `make build`";
constexpr std::array<std::string_view, 1> kTileiras = {"nvidia-cuda-tileiras"};

std::vector<Need> packages_of(Language language) {
  switch (language) {
    case Language::triton: return {{{"triton"}, kSetup}};
    case Language::helion: return {{{"helion"}, kExtra}, {{"triton"}, kSetup}};
    case Language::cute: return {{{"nvidia-cutlass-dsl"}, kExtra}};
    case Language::tilelang: return {{{"tilelang"}, kExtra}};
    case Language::cuda_tile: return {{{"cuda-tile"}, kExtra}};
    case Language::cupy: return {{{"cupy-cuda13x", "cupy-cuda12x", "cupy"}, kExtra}};
    case Language::cpp_extension:
    case Language::cuda:
    case Language::thunderkittens:
    case Language::hip: return {{{"ninja"}, kSetup}};
    default: return {};
  }
}

bool needs_nvcc(Language language) {
  return language == Language::cuda || language == Language::thunderkittens ||
         language == Language::tilelang;
}

bool needs_headers(Language language) {
  switch (language) {
    case Language::triton:
    case Language::helion:
    case Language::cpp_extension:
    case Language::cuda:
    case Language::thunderkittens:
    case Language::hip: return true;
    default: return false;
  }
}

class Examination {
 public:
  Examination(const worker::PythonEnvironment& python,
              const std::expected<build::Nvcc, std::string>& nvcc, bool has_gpu)
      : python_(python), nvcc_(nvcc), has_gpu_(has_gpu) {}

  Finding examine(Language language) const {
    Finding finding{fmt::format("{} backend", name_of(language)), "", Finding::State::note};
    const auto lacks = missing(language, finding.versions);
    std::string versions;
    for (const auto& [package, version] : finding.versions)
      versions += fmt::format("{}{} {}", versions.empty() ? "" : ", ", package, version);
    if (lacks) {
      finding.detail = *lacks;
    } else if (!has_gpu_ && language != Language::torch && language != Language::cpp_extension) {
      finding.detail = "a GPU that can be used is missing";
      if (language == Language::triton || language == Language::helion)
        finding.detail += "; its interpreter runs on the CPU";
      if (!versions.empty()) finding.detail += fmt::format(" ({})", versions);
    } else {
      finding.state = Finding::State::ready;
      finding.detail = versions.empty() ? "ready" : fmt::format("ready ({})", versions);
    }
    return finding;
  }

 private:
  // The one thing, or null; `versions` gets what there is.
  std::optional<std::string> missing(Language language,
                                     std::map<std::string, std::string>& versions) const {
    if (language == Language::hip && python_.torch_version.find("+rocm") == std::string::npos)
      return fmt::format("PyTorch for ROCm 7.1 or later is missing: {} is made for another device",
                         python_.torch_version);
    for (const auto& need : packages_of(language)) {
      const auto* version = version_of_any(need.any_of);
      if (version == nullptr)
        return fmt::format("the package {} is missing: {}", need.any_of.front(), need.install);
      versions.insert(*version);
    }
    if (language == Language::cuda_tile)
      if (const auto* tileiras = version_of_any(kTileiras)) versions.insert(*tileiras);
    if (needs_headers(language) && !python_.has_headers)
      return "the headers of Python are missing: install the package python3-dev";
    if (needs_nvcc(language) && !nvcc_) return "nvcc is missing: " + nvcc_.error();
    if (language == Language::cuda_tile && !has_tileiras())
      return fmt::format(
          "cuTile's compiler tileiras is missing: {}, or install the CUDA toolkit "
          "13.2 or later",
          kExtra);
    if (language == Language::thunderkittens && python_.thunderkittens.empty())
      return "ThunderKittens is missing: THUNDERKITTENS_ROOT names no folder with "
             "include/kittens.cuh";
    return std::nullopt;
  }

  bool has_tileiras() const {
    return version_of_any(kTileiras) != nullptr ||
           (nvcc_ && ::access((nvcc_->root / "bin/tileiras").c_str(), X_OK) == 0);
  }

  const std::pair<const std::string, std::string>* version_of_any(
      std::span<const std::string_view> names) const {
    for (const auto name : names)
      if (const auto found = python_.packages.find(name); found != python_.packages.end())
        return &*found;
    return nullptr;
  }

  const worker::PythonEnvironment& python_;
  const std::expected<build::Nvcc, std::string>& nvcc_;
  bool has_gpu_;
};

// A .hip file, on each maker's cards: the judge knows no way to run one on AMD's.
Finding examine_hip_files(const std::expected<build::Nvcc, std::string>& nvcc,
                          build::Builder* builder, bool has_gpu) {
  constexpr const char* kKernel =
      "#include <hip/hip_runtime.h>\n__global__ void kernel() {}\nextern \"C\" int "
      "kb_run(const void*) { kernel<<<1, 1>>>(); return hipGetLastError(); }\n";
  const auto obstacle = [&](const std::string& architecture) -> std::optional<std::string> {
    if (builder == nullptr) return std::nullopt;
    const auto built = builder->build_hip(kKernel, architecture);
    if (!built) return built.error();
    if (built->status != build::Status::ok) return telling_line(built->log);
    return std::nullopt;
  };
  const auto folders = build::hip_folders();
  const auto hipcc = build::find_hipcc(folders);
  const auto headers = build::find_hip_headers(folders);
  Finding finding{"hip backend", "", Finding::State::note};
  if (!headers) {
    finding.detail = headers.error();
  } else if (!nvcc) {
    finding.detail = "nvcc is missing: " + nvcc.error();
  } else if (const auto fails = obstacle(has_gpu ? cuda::architecture(0) : "sm_90")) {
    finding.detail = *fails;
  } else {
    const std::string with = fmt::format("HIP {}, nvcc {}", headers->version, nvcc->version);
    if (has_gpu) finding.state = Finding::State::ready;
    finding.detail =
        has_gpu ? fmt::format("ready for .hip files on NVIDIA GPUs ({})", with)
                : fmt::format(
                      ".hip files can be compiled for NVIDIA GPUs, for --arch sm_90 ({}); a "
                      "GPU that can be used is missing",
                      with);
  }
  if (!hipcc) {
    finding.detail += "; for AMD's, " + hipcc.error();
  } else if (const auto fails = obstacle("gfx90a")) {
    finding.detail += "; for AMD's, " + *fails;
  } else {
    finding.detail += fmt::format("; for AMD's they can be compiled, for --arch gfx90a (hipcc {})",
                                  hipcc->version);
  }
  return finding;
}

// The second interface of native candidates.
Finding examine_tvm_ffi(const worker::PythonEnvironment& python) {
  if (python.tvm_ffi.empty())
    return {
        "TVM-FFI",
        fmt::format("the package apache-tvm-ffi is missing: {}, or install it with pip", kSetup),
        Finding::State::note};
  const auto version = python.version_of("apache-tvm-ffi");
  return {"TVM-FFI",
          fmt::format("ready (apache-tvm-ffi {})", version),
          Finding::State::ready,
          {{"apache-tvm-ffi", version}}};
}

}  // namespace

std::vector<Finding> examine_languages(const worker::PythonEnvironment& python,
                                       const std::expected<build::Nvcc, std::string>& nvcc,
                                       build::Builder* builder, bool has_gpu) {
  const Examination examination(python, nvcc, has_gpu);
  std::vector<Finding> findings;
  for (const auto language : problem::all_languages()) {
    if (!problem::is_python(language)) continue;
    findings.push_back(examination.examine(language));
    if (language != Language::hip) continue;
    auto files = examine_hip_files(nvcc, builder, has_gpu);
    files.detail += "; for .py files, " + findings.back().detail;
    findings.back() = std::move(files);
  }
  findings.push_back(examine_tvm_ffi(python));
  return findings;
}

}  // namespace kb::cli
