// kernelbench leaderboard RUN...

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/scoring.h"
#include "score/leaderboard.h"

namespace kb::cli {
namespace {

struct LeaderboardFlags {
  std::vector<std::string> runs;
  ScoringFlags scoring;
  OutputFlags output;
  std::string sort = "fast_1";
};

int leaderboard(const LeaderboardFlags& flags) {
  if (flags.scoring.over != "union" && flags.scoring.over != "attempted" &&
      flags.scoring.over != "bundled" && flags.scoring.over != "public")
    throw UsageError("--over is union, attempted, bundled or public");
  const auto metric = value_or_usage_error(score::parse_metric(flags.sort));
  const auto runs = load_runs(flags.runs, flags.scoring);
  auto options = score_options(flags.scoring, runs);
  for (const double p : {metric.p, 1.0})
    if (std::ranges::find(options.thresholds, p) == options.thresholds.end())
      options.thresholds.push_back(p);
  std::ranges::sort(options.thresholds);
  if (options.ks.empty()) options.ks = {1};
  if (std::ranges::find(options.ks, metric.k) == options.ks.end()) options.ks.push_back(metric.k);
  std::vector<score::Entry> entries;
  for (const auto& run : runs)
    entries.push_back({run.name, score::summarize_all(run.evaluations, options), std::nullopt, 0});
  entries = score::rank(std::move(entries), metric);
  score::Report report;
  report.add(score::to_table(entries, metric));
  const std::string over = flags.scoring.over == "union"
                               ? "the problems that any of the runs attempted, the same for all"
                           : flags.scoring.over == "attempted"
                               ? "the problems that each run attempted itself"
                               : "the problems of the " + flags.scoring.over + " set";
  report.add(fmt::format(
      "Over {}. Several samples of a problem: {}. Intervals: 95 %, {} bootstrap resamples of the "
      "problems, seed {}.",
      over, score::name_of(options.samples), score::kResamples, score::kSeed));
  print_output(flags.output, report, score::to_json(entries, metric),
               score::to_numbers(entries, metric));
  return kOk;
}

}  // namespace

Command add_leaderboard(CLI::App& root) {
  auto flags = std::make_shared<LeaderboardFlags>();
  flags->scoring.over = "union";
  auto* app = root.add_subcommand("leaderboard", "Runs in order of a metric");
  app->add_option("runs", flags->runs, "each as for `score`")->required();
  app->add_option("--sort", flags->sort,
                  "fast_P, verified_P, pass@K, correct, geomean or geomean_faster")
      ->capture_default_str();
  add_run_options(*app, flags->scoring);
  add_summary_options(*app, flags->scoring);
  app->get_option("--over")->description(
      "the denominator: union (what any of the runs attempted), attempted (by each itself), "
      "bundled, public");
  add_output_options(*app, flags->output);
  app->footer("Example:  kernelbench leaderboard runs/* --sort verified_1");
  return {app, [flags] { return leaderboard(*flags); }};
}

}  // namespace kb::cli
