// kernelbench score, for the commands that end in it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/scoring.h"

namespace kb::cli {

struct ScoreFlags {
  std::string run;
  ScoringFlags scoring;
  OutputFlags output;
  std::string analysis, export_baseline, html;
};

/// --html alone.
void add_html_option(CLI::App& app, ScoreFlags& flags);

/// Prints the scores of a judged folder. Returns the exit code.
int score(const ScoreFlags& flags);

}  // namespace kb::cli
