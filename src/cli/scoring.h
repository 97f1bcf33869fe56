// What `score`, `compare` and `leaderboard` share: their options, the runs that they read, and
// where their output goes.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "score/run.h"
#include "score/score.h"

namespace kb::cli {

struct ScoringFlags {
  std::vector<int> levels;
  std::string ids;
  std::string samples = "average";
  std::string rules = "own";
  std::string over = "attempted";
  std::string baseline;
  std::optional<std::string> thresholds, ks;
};

/// --level, --ids, --samples, --rules, --baseline.
void add_run_options(CLI::App& app, ScoringFlags& flags);
/// --over, --p, --k.
void add_summary_options(CLI::App& app, ScoringFlags& flags);

/// The run at `path`, with the evaluations that the flags choose, under their rule and against
/// their baseline; what has to be said about it goes to stderr. UsageError for what cannot be read
/// and where nothing is left.
score::Run load_run(const std::string& path, const ScoringFlags& flags);
/// Those, each with a name of its own: the path where two would have one name.
std::vector<score::Run> load_runs(const std::vector<std::string>& paths, const ScoringFlags& flags);

/// UsageError for a word that means nothing. The set of --over is of the levels of --level, or else
/// of those that the runs attempted.
score::Options score_options(const ScoringFlags& flags, const std::vector<score::Run>& runs);

/// Where a command's output goes. At most one of them takes stdout.
struct OutputFlags {
  bool json = false;
  bool markdown = false;
  std::string csv;  ///< a file, - for stdout, or empty
};
void add_output_options(CLI::App& app, OutputFlags& flags);
/// Prints the report, or what the flags ask for in its place; and writes the CSV file.
void print_output(const OutputFlags& flags, const score::Report& report, const nlohmann::json& json,
                  const score::Table& table);

}  // namespace kb::cli
