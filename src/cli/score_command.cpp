// kernelbench score RUN

#include <fmt/format.h>

#include <map>
#include <utility>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/score.h"
#include "cli/scoring.h"
#include "flag/flag.h"
#include "problem/problem.h"
#include "report/page.h"
#include "score/baseline.h"
#include "score/kernelbench_files.h"
#include "score/score.h"
#include "version.h"

namespace kb::cli {
namespace {

// "level1/19" → "19_ReLU.py", where the bundled set has it.
std::map<std::string, std::string> file_names() {
  std::map<std::string, std::string> names;
  const auto catalog = value_or_usage_error(problem::Catalog::open(problem::bundled_root()));
  for (const auto& entry : catalog.entries())
    names[entry.id.text()] = entry.path.filename().string();
  return names;
}

// KernelBench's own averages, beside ours.
std::string reported_line(const score::Run& run) {
  std::string line;
  for (const auto& [k, value] : run.reported_pass_at_k)
    line += fmt::format("{}pass@{} {:.3f}", line.empty() ? "" : "  ", k, value);
  return line.empty() ? "" : "Its own pass_at_k_results.json says: " + line;
}

// "level1/19" → "ReLU".
std::map<std::string, std::string> problem_names() {
  std::map<std::string, std::string> names;
  for (const auto& [problem, file] : file_names())
    if (const auto parts = problem::parse_problem_file_name(file)) names[problem] = parts->name;
  return names;
}

void write_report(const ScoreFlags& flags, const score::Run& run, const score::Options& options,
                  const std::vector<score::Summary>& summaries) {
  const auto details = report::load_details(flags.run, run.evaluations);
  if (!details) throw UsageError(printable(details.error(), false));
  report::Input input{.run = run.name,
                      .tool = "kernelbench " KERNELBENCH_VERSION,
                      .rule = flags.scoring.rules,
                      .evaluations = run.evaluations,
                      .summaries = summaries,
                      .options = options,
                      .details = *details,
                      .notes = run.notes,
                      .problem_names = problem_names(),
                      .flag_meanings = {}};
  if (const auto reported = reported_line(run); !reported.empty()) input.notes.push_back(reported);
  if (!flags.scoring.baseline.empty())
    input.notes.push_back("Speedups are against stored times: " + flags.scoring.baseline);
  for (const auto& evaluation : run.evaluations)
    for (const auto& flag : evaluation.flags) input.flag_meanings[flag] = meaning_of_flag(flag);
  write_output_file(flags.html, report::make_page(report::make_document(input)));
}

}  // namespace

int score(const ScoreFlags& flags) {
  std::vector<score::Run> runs;
  runs.push_back(load_run(flags.run, flags.scoring));
  const score::Run& run = runs.front();
  if (flags.scoring.over != "attempted" && flags.scoring.over != "bundled" &&
      flags.scoring.over != "public")
    throw UsageError("--over is attempted, bundled or public");
  const auto options = score_options(flags.scoring, runs);
  const auto summaries = score::summarize(run.evaluations, options);
  if (!flags.analysis.empty())
    write_output_file(flags.analysis,
                      score::kernelbench_analysis(run.evaluations, options).dump(2) + "\n");
  if (!flags.export_baseline.empty()) {
    const auto baseline = score::baseline_json(run.evaluations, file_names());
    if (baseline.empty())
      throw UsageError(fmt::format("{} holds no time of a reference", run.name));
    write_output_file(flags.export_baseline, baseline.dump(2) + "\n");
  }
  auto json = score::to_json(summaries);
  for (const auto& [k, value] : run.reported_pass_at_k)
    json[0]["reported_pass_at_k"][std::to_string(k)] = value;
  print_output(flags.output, score::to_report(summaries, run.evaluations, {reported_line(run)}),
               json, score::to_table(summaries));
  if (!flags.html.empty()) {
    write_report(flags, run, options, summaries);
    // stdout may be a program's.
    const bool text = !flags.output.json && !flags.output.markdown && flags.output.csv != "-";
    fmt::print(text ? stdout : stderr, "\nHTML report: {}\n", printable(flags.html, false));
  }
  return kOk;
}

void add_html_option(CLI::App& app, ScoreFlags& flags) {
  app.add_option("--html", flags.html,
                 "write a report to this file: one page that a browser opens without a network");
}

Command add_score(CLI::App& root) {
  auto flags = std::make_shared<ScoreFlags>();
  auto* app = root.add_subcommand("score", "fast_p and the rest, from a judged folder");
  app->add_option("run", flags->run,
                  "a folder that `run` has judged, or KernelBench's: its eval_results.json or the "
                  "folder that holds it")
      ->required();
  add_run_options(*app, flags->scoring);
  add_summary_options(*app, flags->scoring);
  add_output_options(*app, flags->output);
  add_html_option(*app, *flags);
  app->add_option("--analysis", flags->analysis,
                  "write the scores by KernelBench's rule to this file (JSON)");
  app->add_option("--export-baseline", flags->export_baseline,
                  "write the references' times to this file in KernelBench's format (JSON)");
  app->footer(
      "docs/scoring.md says what each number is.\n"
      "Example:  kernelbench score examples/run_cpu --html report.html\n"
      "          kernelbench score runs/old --level 1 --baseline baseline_time_torch.json");
  return {app, [flags] { return score(*flags); }};
}

}  // namespace kb::cli
