// HIP: its compiler for AMD's cards, and its headers, through which nvcc compiles it for NVIDIA's.
#pragma once

#include <expected>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kb::build {

struct Hip {
  std::filesystem::path root;     ///< the SDK's folder, which a sandbox must show
  std::filesystem::path include;  ///< holds hip/hip_runtime.h
  std::filesystem::path hipcc;    ///< absolute; empty in what find_hip_headers() returns
  std::string version;            ///< "5.7.31921"
  /// Everything about the SDK that a library depends on: path and version.
  std::string identity;
};

/// Where an SDK is looked for: $ROCM_PATH, $HIP_PATH, /opt/rocm, the folders above those of PATH.
std::vector<std::filesystem::path> hip_folders();

/// The first of `folders` that has a hipcc (in bin/) that runs. Runs each that it finds once,
/// compiling nothing. Error: one sentence.
std::expected<Hip, std::string> find_hipcc(const std::vector<std::filesystem::path>& folders);

/// The first of `folders` whose include/hip/ has the headers for NVIDIA's cards (nvidia_detail), of
/// HIP 5.7 or later.
/// Runs nothing. Error: one sentence.
std::expected<Hip, std::string> find_hip_headers(const std::vector<std::filesystem::path>& folders);

/// "gfx942", "gfx90a", "gfx1100" and the like.
bool is_amd_architecture(std::string_view word);

/// The flags for a HIP candidate, without those that name files or the architecture: for hipcc,
/// and for nvcc beside cuda_flags().
const std::vector<std::string>& hipcc_flags();
const std::vector<std::string>& hip_on_nvcc_flags();

/// The flags for the libraries beyond the runtime that hipcc links a source with, by what it
/// includes.
std::vector<std::string> hip_library_flags(const Hip& hip, std::string_view source);

}  // namespace kb::build
