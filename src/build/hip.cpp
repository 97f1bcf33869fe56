#include "build/hip.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "build/capture.h"
#include "build/files.h"
#include "build/nvcc.h"

namespace kb::build {

namespace fs = std::filesystem;

namespace {

// The headers of older ones use what CUDA 12 does not have.
constexpr int kOldestMajor = 5;
constexpr int kOldestMinor = 7;

// Of the headers of ROCm's libraries, and what each is linked with.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kLibraries{
    {{"hipblas.h", "hipblas"},
     {"hipblaslt.h", "hipblaslt"},
     {"hipfft.h", "hipfft"},
     {"hiprand.h", "hiprand"},
     {"hiprtc.h", "hiprtc"},
     {"hipsolver.h", "hipsolver"},
     {"hipsparse.h", "hipsparse"},
     {"miopen.h", "MIOpen"},
     {"rocblas.h", "rocblas"}}};

// "5.7.31921" of hip/hip_version.h; empty where that does not say.
std::string version_in(const fs::path& include) {
  std::ifstream file(include / "hip" / "hip_version.h");
  std::string major, minor, patch;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string define, name, value;
    if (!(words >> define >> name >> value) || define != "#define") continue;
    if (name == "HIP_VERSION_MAJOR") major = value;
    if (name == "HIP_VERSION_MINOR") minor = value;
    if (name == "HIP_VERSION_PATCH") patch = value;
  }
  if (major.empty() || minor.empty() || patch.empty()) return "";
  return fmt::format("{}.{}.{}", major, minor, patch);
}

// Null where there are no headers of HIP: a folder of somebody's home, say, which must not be shown
// to a candidate.
std::optional<Hip> headers_in(const fs::path& folder) {
  std::error_code error;
  Hip hip;
  hip.root = fs::canonical(folder, error);
  if (error) return std::nullopt;
  hip.include = hip.root / "include";
  if (!is_there(hip.include / "hip" / "hip_runtime.h")) return std::nullopt;
  hip.version = version_in(hip.include);
  if (hip.version.empty()) return std::nullopt;
  hip.identity = fmt::format("{}\n{}", hip.root.string(), hip.version);
  return hip;
}

}  // namespace

std::vector<fs::path> hip_folders() {
  std::vector<fs::path> folders;
  for (const char* name : {"ROCM_PATH", "HIP_PATH"}) {
    const char* folder = std::getenv(name);
    if (folder != nullptr && *folder == '/') folders.emplace_back(folder);
  }
  folders.emplace_back("/opt/rocm");
  for (const fs::path& folder : path_folders()) folders.push_back(folder.parent_path());
  return folders;
}

std::expected<Hip, std::string> find_hipcc(const std::vector<fs::path>& folders) {
  std::string why = "no HIP compiler was found";
  std::set<fs::path> seen;
  for (const fs::path& folder : folders) {
    const fs::path path = folder / "bin" / "hipcc";
    if (!seen.insert(path).second || ::access(path.c_str(), X_OK) != 0) continue;
    auto hip = headers_in(folder);
    const auto words = hip ? capture({path.string(), "--version"}) : std::unexpected(0);
    if (!words || words->find("HIP version") == std::string::npos) {
      why = fmt::format("{} has no headers of HIP beside it, or does not run", path.string());
      continue;
    }
    hip->hipcc = hip->root / "bin" / "hipcc";
    hip->identity += '\n' + *words;
    return *hip;
  }
  return std::unexpected(
      fmt::format("{}: install ROCm 7.1 or later (hipcc), in /opt/rocm or in the folder that "
                  "ROCM_PATH names",
                  why));
}

std::expected<Hip, std::string> find_hip_headers(const std::vector<fs::path>& folders) {
  std::string why = "HIP's headers for NVIDIA GPUs were not found";
  for (const fs::path& folder : folders) {
    const auto hip = headers_in(folder);
    if (!hip) continue;
    if (!is_there(hip->include / "hip" / "nvidia_detail" / "nvidia_hip_runtime.h")) {
      why = fmt::format("the HIP in {} has no headers for NVIDIA GPUs", hip->root.string());
      continue;
    }
    int major = 0, minor = 0;
    if (std::sscanf(hip->version.c_str(), "%d.%d", &major, &minor) == 2 &&
        std::pair(major, minor) >= std::pair(kOldestMajor, kOldestMinor)) {
      return *hip;
    }
    why = fmt::format("the HIP in {} is too old ({})", hip->root.string(), hip->version);
  }
  return std::unexpected(
      fmt::format("{}: install HIP for NVIDIA (include/hip/nvidia_detail, of HIP {}.{} or later), "
                  "in /opt/rocm or in the folder that HIP_PATH names",
                  why, kOldestMajor, kOldestMinor));
}

bool is_amd_architecture(std::string_view word) {
  if (!word.starts_with("gfx")) return false;
  word.remove_prefix(3);
  return word.size() >= 3 && word.size() <= 4 && word[0] != '0' &&
         std::ranges::all_of(
             word, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

const std::vector<std::string>& hipcc_flags() {
  // As cuda_flags().
  static const std::vector<std::string> flags{"-std=c++20",
                                              "-O3",
                                              "-shared",
                                              "-fPIC",
                                              "-fdiagnostics-color=never",
                                              "-ferror-limit=50",
                                              "-Wl,-z,defs,-z,relro,-z,now,--as-needed"};
  return flags;
}

const std::vector<std::string>& hip_on_nvcc_flags() {
  static const std::vector<std::string> flags{"-D__HIP_PLATFORM_NVIDIA__", "-include",
                                              "kernelbench/hip_on_cuda.h", "-x", "cu"};
  return flags;
}

std::vector<std::string> hip_library_flags(const Hip& hip, std::string_view source) {
  std::vector<std::string> flags;
  for (const auto& [header, name] : kLibraries) {
    if (source.find(header) != std::string_view::npos) flags.push_back(fmt::format("-l{}", name));
  }
  // Where the system does not look for them; that holds for the runtime as well.
  if (hip.root != "/usr") {
    flags.push_back(fmt::format("-Wl,-rpath,{}", (hip.root / "lib").string()));
  }
  return flags;
}

}  // namespace kb::build
