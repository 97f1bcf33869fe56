#include "problem/candidate.h"

#include <fmt/format.h>

#include "digest/sha256.h"
#include "problem/text_file.h"

namespace kb::problem {

std::string_view name_of(Backend backend) {
  switch (backend) {
    case Backend::cpp: return "cpp";
    case Backend::cuda_cpp: return "cuda_cpp";
    case Backend::hip: return "hip";
    case Backend::python: return "python";
  }
  return "unknown";
}

std::expected<Candidate, std::string> load_candidate(const std::filesystem::path& path) {
  // The file first: for a path that does not exist, that is what to say.
  auto source = read_text_file(path);
  if (!source) return std::unexpected(source.error());
  const std::string shown = printable(path.string());

  Candidate candidate;
  const std::filesystem::path suffix = path.extension();
  if (suffix == ".py") {
    candidate.backend = Backend::python;
    candidate.language = language_of_python(*source);
  } else if (suffix == ".cpp" || suffix == ".cc") {
    candidate.backend = Backend::cpp;
    candidate.language = Language::cpp;
  } else if (suffix == ".cu") {
    candidate.backend = Backend::cuda_cpp;
    candidate.language = Language::cuda_cpp;
  } else if (suffix == ".hip") {
    candidate.backend = Backend::hip;
    candidate.language = Language::hip;
  } else {
    return std::unexpected(fmt::format(
        "{} has no suffix that tells its language; name it .py, .cpp, .cc, .cu or .hip", shown));
  }
  if (source->find_first_not_of(" \t\f\v\r\n") == std::string::npos) {
    return std::unexpected(fmt::format("{} is empty; there is nothing to judge", shown));
  }
  candidate.path = path;
  candidate.hash = sha256_hex(*source);
  candidate.source = std::move(*source);
  return candidate;
}

std::expected<void, std::string> set_language(Candidate& candidate, Language language) {
  const bool fits = candidate.backend == Backend::python
                        ? is_python(language)
                        : name_of(language) == name_of(candidate.backend);
  if (!fits)
    return std::unexpected(
        fmt::format("{} cannot be of the backend {}: a {} file is {}",
                    printable(candidate.path.filename().string()), name_of(language),
                    printable(candidate.path.extension().string()),
                    candidate.backend == Backend::python ? "a ModelNew in Python"
                                                         : name_of(candidate.backend)));
  candidate.language = language;
  return {};
}

}  // namespace kb::problem
