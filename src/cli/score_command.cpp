// kernelbench score DIR

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/failure.h"
#include "score/score.h"
#include "store/store.h"

namespace kb::cli {
namespace {

int score(const std::string& folder, bool json) {
  const auto file = std::filesystem::path(folder) / "kernelbench.db";
  if (!std::filesystem::exists(file))
    throw UsageError(fmt::format("there is no {}: judge the folder first with: kernelbench run {}",
                                 file.string(), folder));
  auto store = value_or_usage_error(store::Store::open(file));
  std::vector<score::Evaluation> evaluations;
  for (const auto& row : value_or_usage_error(store.rows())) {
    auto evaluation = score::parse_evaluation(row.result_json);
    if (!evaluation)
      throw UsageError(fmt::format("{}: a result is damaged ({}): run `kernelbench run {}` again",
                                   file.string(), evaluation.error(), folder));
    evaluations.push_back(std::move(*evaluation));
  }
  if (evaluations.empty())
    throw UsageError(
        fmt::format("{} holds no result yet: run kernelbench run {}", file.string(), folder));
  const auto summaries = score::summarize(evaluations);
  if (json)
    fmt::print("{}\n", score::to_json(summaries).dump(2));
  else
    fmt::print("{}", score::to_text(summaries, evaluations));
  return kOk;
}

}  // namespace

Command add_score(CLI::App& root) {
  struct Flags {
    std::string folder;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  auto* app = root.add_subcommand("score", "fast_p and the rest, from a judged folder");
  app->add_option("folder", flags->folder, "a folder that `run` has judged")->required();
  app->add_flag("--json", flags->json, "print one JSON object");
  app->footer("Example:  kernelbench score examples/run_cpu --json");
  return {app, [flags] { return score(flags->folder, flags->json); }};
}

}  // namespace kb::cli
