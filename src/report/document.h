// What a page shows, as JSON: one object for the whole run, and one for each sample, which the page
// parses only when the sample is opened.
//
// The run:
//   {"run", "tool", "rule", "notes", "judged" [first, last], "conditions", "flags" {flag: meaning},
//    "summaries" (as `score --json`), "curves" [{"name", "points" [[p, value, low, high, verified,
//    low, high]]}], "samples" [{"key", "problem", "name", "level", "sample", "backend", "verdict",
//    "speedup", "ci95", "time_us", "reference_time_us", "flags", "clean", "message"}]}
// A sample: {"result", "seeds" (of its trials, as words), "finished_at", "source", "source_note",
// "earlier", "roofline"}.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/detail.h"
#include "score/score.h"

namespace kb::report {

/// Outlives the call that it is given to.
struct Input {
  std::string run;   ///< the run's name
  std::string tool;  ///< "kernelbench 0.1.0"
  std::string rule;  ///< "own" or "kernelbench"
  const std::vector<score::Evaluation>& evaluations;
  const std::vector<score::Summary>& summaries;
  const score::Options& options;
  const Details& details;
  std::vector<std::string> notes;                    ///< a sentence each
  std::map<std::string, std::string> problem_names;  ///< "level1/19" → "ReLU"
  std::map<std::string, std::string> flag_meanings;  ///< "noisy" → …
};

struct Document {
  nlohmann::json run;
  std::vector<nlohmann::json> samples;  ///< in the order of run["samples"]: by problem, then sample
};

Document make_document(const Input& input);

/// Where a call stands under the roofs of its device: {"intensity" (operations a byte), "bytes",
/// "operations", "memory_bytes_per_s", "memory" (whose figure that is), "ceilings" [{"name",
/// "operations_per_s"}]}. Members that the result does not tell, or a card that is not listed, are
/// missing; null when nothing is known.
nlohmann::json roofline(const nlohmann::json& result);

}  // namespace kb::report
