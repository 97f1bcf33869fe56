// kernelbench compare RUN RUN...

#include <fmt/format.h>

#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/scoring.h"
#include "score/compare.h"

namespace kb::cli {
namespace {

struct CompareFlags {
  std::vector<std::string> runs;
  ScoringFlags scoring;
  OutputFlags output;
};

int compare(const CompareFlags& flags) {
  if (flags.runs.size() < 2) throw UsageError("compare takes two runs or more");
  const auto runs = load_runs(flags.runs, flags.scoring);
  const auto options = score_options(flags.scoring, runs);
  std::vector<score::Comparison> comparisons;
  score::Report report;
  auto json = nlohmann::json::array();
  for (std::size_t i = 1; i < runs.size(); ++i) {
    auto comparison = score::compare(runs.front(), runs[i], options);
    report.add(score::to_report(comparison));
    json.push_back(score::to_json(comparison));
    comparisons.push_back(std::move(comparison));
  }
  print_output(flags.output, report, json, score::to_table(comparisons));
  return kOk;
}

}  // namespace

Command add_compare(CLI::App& root) {
  auto flags = std::make_shared<CompareFlags>();
  auto* app =
      root.add_subcommand("compare", "Two runs, problem by problem; more against the first");
  app->add_option("runs", flags->runs, "the base, then the others; each as for `score`")
      ->required();
  add_run_options(*app, flags->scoring);
  add_output_options(*app, flags->output);
  app->footer("Example:  kernelbench compare runs/before runs/after --markdown");
  return {app, [flags] { return compare(*flags); }};
}

}  // namespace kb::cli
