// The CUDA compiler: where it is, what exactly it is, and what it is told.
#pragma once

#include <expected>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kb::build {

struct Nvcc {
  std::filesystem::path path;       ///< absolute, links resolved
  std::filesystem::path root;       ///< the toolkit's folder, which a sandbox must show
  std::filesystem::path libraries;  ///< those of the toolkit; empty: where the system's are
  std::string version;              ///< "13.0.88"
  int major = 0;
  /// Everything about the toolkit that a library depends on: path and version.
  std::string identity;
};

/// The folders of PATH that are absolute, in order.
std::vector<std::filesystem::path> path_folders();
/// Where nvcc is looked for: $CUDA_HOME/bin, /usr/local/cuda/bin, the folders of PATH.
std::vector<std::filesystem::path> nvcc_folders();

/// The first nvcc in `folders` that is 12.4 or later. Runs each that it finds once (10 ms),
/// compiling nothing. Error: one sentence.
std::expected<Nvcc, std::string> find_nvcc(const std::vector<std::filesystem::path>& folders);

/// "sm_90", "sm_90a", "sm_120" and the like.
bool is_architecture(std::string_view word);

/// The flag that makes machine code for it alone. What is compiled for one GPU may use all that
/// this GPU has: from "sm_90" on that is the target of that name with an "a" (wgmma, setmaxnreg …).
std::string architecture_flag(const std::string& architecture);

/// What torch.utils.cpp_extension calls it: "9.0", "9.0a".
std::string torch_architecture(const std::string& architecture);

/// The flags for a CUDA candidate, without those that name files or the architecture.
const std::vector<std::string>& cuda_flags();

/// The libraries beyond the runtime that a source is linked with ("cublas"), by what it includes.
std::vector<std::string> cuda_libraries(std::string_view source);

/// What links a library of `nvcc` with those. The driver's is left undefined when the toolkit has
/// no stand-in for it: whoever loads the library on a machine with a GPU has it.
std::vector<std::string> library_flags(const Nvcc& nvcc, const std::vector<std::string>& libraries);

}  // namespace kb::build
