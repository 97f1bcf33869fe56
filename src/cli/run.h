// Judging a folder of samples, for the commands that make one.
#pragma once

#include "cli/judging.h"
#include "cli/samples.h"

namespace kb::cli {

struct RunFlags {
  JudgingFlags judging;
  SampleFlags samples;
};

/// Judges what has not been judged yet, and writes the folder's kernelbench.db and
/// eval_results.json. Returns the exit code. UsageError for bad input.
int judge_folder(const RunFlags& flags);

}  // namespace kb::cli
