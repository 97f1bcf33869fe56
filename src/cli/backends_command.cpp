// kernelbench backends FOLDER: what the examples of each backend came to.

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/scoring.h"
#include "score/backends.h"
#include "score/run.h"

namespace kb::cli {
namespace {

struct BackendsFlags {
  std::string folder, into;
  OutputFlags output;
};

void put_into(const std::string& path, const std::string& block) {
  const auto document = value_or_usage_error(score::read_results_file(path));
  const auto changed = score::with_block(document, "\n" + block + "\n");
  if (!changed)
    throw UsageError(
        fmt::format("{} cannot take the tables: {}", printable(path, false), changed.error()));
  write_output_file(path, *changed);
}

int backends(const BackendsFlags& flags) {
  auto showcase = score::load_showcase(flags.folder);
  if (!showcase) throw UsageError(printable(showcase.error(), false));
  const auto report = score::to_report(*showcase);
  if (!flags.into.empty()) put_into(flags.into, report.markdown());
  print_output(flags.output, report, score::to_json(*showcase), score::to_table(*showcase));
  return kOk;
}

}  // namespace

Command add_backends(CLI::App& root) {
  auto flags = std::make_shared<BackendsFlags>();
  auto* app = root.add_subcommand(
      "backends", "The examples of each backend: versions, verdicts, times, what has not run");
  app->add_option("folder", flags->folder,
                  "what scripts/judge-backends has left: folders such as triton-fp32, doctor.json")
      ->required();
  app->add_option("--into", flags->into,
                  "also put the tables, as Markdown, into this file, between its lines "
                  "'<!-- kernelbench backends: begin -->' and '… end -->'");
  add_output_options(*app, flags->output);
  app->footer(
      "Example:  scripts/judge-backends --size small\n"
      "          kernelbench backends build/backends --into docs/backends.md");
  return {app, [flags] { return backends(*flags); }};
}

}  // namespace kb::cli
