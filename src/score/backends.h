// What the examples of each backend came to: the folder that scripts/judge-backends leaves.
//
//   doctor.json             `kernelbench doctor --json` of the machine
//   BACKEND-PRECISION/      a folder that `run` has judged, with the samples; where one has no
//                           result, `not_run` there says why in its first line
//   BACKEND-PRECISION/again/   the same samples, judged once more with the build cache warm
//   profile-NAME.json       `kernelbench profile --json` of a sample
//
// Each may be missing, and all but the folders is read as a stranger's.
#pragma once

#include <expected>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "score/evaluation.h"
#include "score/table.h"

namespace kb::score {

/// One result: what scoring reads, and what it was judged on and took.
struct Judgement {
  Evaluation evaluation;
  std::string candidate;                    ///< the file's name
  std::string precision, size, device;      ///< device: "cpu", "cuda:0"
  std::string card;                         ///< the device's name
  std::map<std::string, double> phases_ms;  ///< finite; as in the result
  std::string message;

  /// Compilation and all that follows; null where the result has no such times.
  std::optional<double> whole_ms() const;
};

/// A sample of one backend at one precision.
struct Example {
  std::string backend;  ///< the folder's
  std::string precision;
  std::string problem;
  int sample = 0;
  std::optional<Judgement> first, again;
  std::string not_run;           ///< why there is no `first`; else empty
  std::optional<double> ncu_us;  ///< of a call, by Nsight Compute
};

/// A line of `doctor --json` on one backend.
struct Readiness {
  bool ready = false;
  std::string detail;
  std::map<std::string, std::string> versions;
};

struct Showcase {
  std::vector<Example> examples;                ///< by backend, precision, problem and sample
  std::map<std::string, Readiness> readiness;   ///< by backend
  std::map<std::string, std::string> versions;  ///< of Python, PyTorch, nvcc
};

/// Error: one sentence (no such folder, no folder of a backend in it, a damaged file).
std::expected<Showcase, std::string> load_showcase(const std::filesystem::path& folder);

/// The backends with their versions and what has not run; verdicts and speedups; seconds; and,
/// where there are profiles, their times beside the judge's.
Report to_report(const Showcase& showcase);
nlohmann::json to_json(const Showcase& showcase);
/// One row an example, unrounded, for CSV.
Table to_table(const Showcase& showcase);

/// `document` with `block` between its markers. Error: one sentence, when it does not have each
/// marker once, in their order, on a line of its own.
std::expected<std::string, std::string> with_block(const std::string& document,
                                                   const std::string& block);
inline constexpr const char* kBlockBegins = "<!-- kernelbench backends: begin -->";
inline constexpr const char* kBlockEnds = "<!-- kernelbench backends: end -->";

}  // namespace kb::score
