// KernelBench's own result file, so that existing analysis scripts go on working on a run of ours.
//
// An object by problem number as a string, each a list of
//   {"sample_id", "compiled", "correctness", "metadata", "runtime" (ms, or -1), "runtime_stats",
//   "ref_runtime", "ref_runtime_stats"}.
// It holds the public verdict: the members `public.compiled` and `public.correct` of a result, or
// `compiled` and `correct` of one that has no `public`. Numbers do not tell levels apart, so a run
// over several levels gets one file a level.
#pragma once

#include <expected>
#include <filesystem>
#include <string>
#include <vector>

#include "store/store.h"

namespace kb::store {

struct WrittenResults {
  std::vector<std::filesystem::path> files;
  std::vector<std::string>
      notes;  ///< a sentence each: rows that were left out, a file that was moved aside
};

/// Writes `folder`/eval_results.json, or eval_results_level<N>.json when the rows are of several
/// levels; none when no row has an id. Each file appears by one rename(2): a reader sees the old
/// one or the new one. infrastructure_error rows are left out, and rows whose JSON is bad or whose
/// problem has no id (with a note). A file of that name that this function did not write
/// (KernelBench's own, of an earlier run in this folder) is kept as <name>.original.json. Error:
/// one sentence.
std::expected<WrittenResults, std::string> write_kernelbench_results(
    const std::filesystem::path& folder, const std::vector<Row>& rows);

}  // namespace kb::store
