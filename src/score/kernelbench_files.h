// KernelBench's files, as strangers' runs hold them: what its versions have written is read, and
// what it never wrote is refused with one sentence.
//
// eval_results.json maps a problem's number to its result or to a list of them:
//   {"sample_id", "compiled", "correctness", "metadata", "runtime" (ms, -1: none), "runtime_stats",
//   "ref_runtime" (not in older ones)}
// pass_at_k_results.json holds averages: {"averages": {"avg_pass@1": 0.5}}.
// Python writes NaN and Infinity as such; here they are null.
#pragma once

#include <expected>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "score/evaluation.h"
#include "score/score.h"

namespace kb::score {

/// JSON as Python writes it. Error: one sentence. A name that an object on the top level holds
/// twice is an error too: one of the two would be lost.
std::expected<nlohmann::ordered_json, std::string> parse_python_json(std::string_view text);

/// The evaluations of an eval_results.json. Keys are numbers ("19", of level `level`), or say the
/// level themselves ("level1/19", "1/19", "1_19", "level_1_problem_19"). `backend` is unknown and
/// stays empty. The verdict is `correct`, `compile_error`, `runtime_error` or `wrong_value`; the
/// speedup is ref_runtime / runtime where both are there, without an interval. Error: one sentence
/// (what is foreign, a sample twice, number keys with `level` 0).
std::expected<std::vector<Evaluation>, std::string> parse_eval_results(std::string_view text,
                                                                       int level);

/// k → average of a pass_at_k_results.json, as its maker computed it. Error: one sentence.
std::expected<std::map<int, double>, std::string> parse_pass_at_k(std::string_view text);

/// The analysis of a run by KernelBench's rule, one object a level:
///   {"level1": {"total", "compiled", "correct", "geometric_mean_speedup",
///   "geometric_mean_speedup_faster", "fast_p": {"0.0": …}, "pass_at_k": {"1": …}}}
/// The public verdict; sample 0 alone but in pass@k; `total` is the number of problems in the
/// denominator; means are null when there is nothing to take them of.
nlohmann::ordered_json kernelbench_analysis(const std::vector<Evaluation>& evaluations,
                                            Options options);

}  // namespace kb::score
