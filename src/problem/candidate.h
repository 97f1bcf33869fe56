// One submitted kernel source, as it lies on disk.
#pragma once

#include <expected>
#include <filesystem>
#include <string>
#include <string_view>

namespace kb::problem {

enum class Backend {
  cpp,
  cuda_cpp,
  python
};  ///< of a candidate, by its file suffix: .cpp .cc / .cu / .py
std::string_view name_of(Backend backend);  ///< "cpp", "cuda_cpp", "python"

struct Candidate {
  std::filesystem::path path;
  std::string source;
  std::string hash;  ///< SHA-256 of the bytes
  Backend backend = Backend::python;
};

/// Error: one sentence (missing, a directory, over 4 MiB, not UTF-8, unknown suffix, empty).
std::expected<Candidate, std::string> load_candidate(const std::filesystem::path& path);

}  // namespace kb::problem
