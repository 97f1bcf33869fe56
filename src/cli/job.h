// One sample's way to a row of results: what `run` and `refine` share.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/judging.h"
#include "judge/evaluator.h"
#include "problem/problem.h"
#include "store/store.h"

namespace kb::cli {

struct JudgingJob {
  problem::Sample sample;
  problem::Problem problem;
  std::optional<problem::Candidate> candidate;  ///< none: the file cannot be one
  std::string refusal;                          ///< why it cannot
  std::optional<std::string> not_here;  ///< why this machine cannot judge it: "they need a GPU …"
  store::Key key;                       ///< its `device` is the kind: "cpu" or "cuda"
};

/// Reads the sample's file and says where and under which key it is judged. `devices` as devices_of
/// gives them. UsageError where none of them can run it.
JudgingJob make_job(const problem::Sample& sample, problem::Problem problem,
                    const JudgingFlags& flags, const std::vector<std::string>& devices,
                    const judge::Environment& environment);

/// All of the flags and the environment that changes a result.
nlohmann::json settings_of(const JudgingFlags& flags, const std::string& device,
                           const judge::Environment& environment);

/// The result of a job without a candidate.
judge::Result refused(const JudgingJob& job);

/// `result` is what judge::to_json makes.
store::Row row_of(const JudgingJob& job, nlohmann::json result);

}  // namespace kb::cli
