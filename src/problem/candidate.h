// One submitted kernel source, as it lies on disk.
#pragma once

#include <expected>
#include <filesystem>
#include <string>
#include <string_view>

#include "problem/language.h"

namespace kb::problem {

enum class Backend {
  cpp,
  cuda_cpp,
  hip,
  python
};  ///< how a candidate is built and run, by its file suffix: .cpp .cc / .cu / .hip / .py
std::string_view name_of(Backend backend);  ///< "cpp", "cuda_cpp", "hip", "python"

struct Candidate {
  std::filesystem::path path;
  std::string source;
  std::string hash;  ///< SHA-256 of the bytes
  Backend backend = Backend::python;
  Language language = Language::unknown;  ///< what results call its backend
};

/// Error: one sentence (missing, a directory, over 4 MiB, not UTF-8, unknown suffix, empty).
std::expected<Candidate, std::string> load_candidate(const std::filesystem::path& path);

/// Overrides the language that load_candidate has recognised. Error: one sentence (a language that
/// a file with this suffix cannot have).
std::expected<void, std::string> set_language(Candidate& candidate, Language language);

}  // namespace kb::problem
