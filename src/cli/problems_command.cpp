// kernelbench problems list | show

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/failure.h"
#include "problem/problem.h"

namespace kb::cli {
namespace {

int list(int level, bool json) {
  const auto catalog = value_or_usage_error(problem::Catalog::open(problem::bundled_root()));
  auto rows = nlohmann::json::array();
  for (const auto& entry : catalog.entries()) {
    if (level > 0 && entry.id.level != level) continue;
    const auto problem = value_or_usage_error(catalog.load(entry.id));
    if (json)
      rows.push_back({{"id", entry.id.text()},
                      {"name", entry.name},
                      {"summary", problem.summary},
                      {"hash", problem.hash}});
    else
      fmt::print("{:<11} {:<44} {}\n", entry.id.text(), entry.name, problem.summary);
  }
  if (json) fmt::print("{}\n", rows.dump(2));
  return kOk;
}

int show(const std::string& argument, bool json) {
  const auto problem = value_or_usage_error(problem::find(argument));
  if (json) {
    fmt::print("{}\n", nlohmann::json{{"id", problem.id ? nlohmann::json(problem.id->text())
                                                        : nlohmann::json(nullptr)},
                                      {"name", problem.name},
                                      {"summary", problem.summary},
                                      {"path", problem.path.string()},
                                      {"hash", problem.hash},
                                      {"source", problem.source}}
                           .dump(2));
    return kOk;
  }
  fmt::print("# {}  {}\n# {}\n# hash {}\n\n{}", problem.label, problem.name, problem.path.string(),
             problem.hash, problem.source);
  return kOk;
}

}  // namespace

Command add_problems_list(CLI::App& problems) {
  struct Flags {
    int level = 0;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  auto* app = problems.add_subcommand("list", "The bundled problems, one a line");
  app->add_option("--level", flags->level, "only this level")->check(CLI::Range(1, 4));
  app->add_flag("--json", flags->json, "print a JSON array");
  app->footer("Example:  kernelbench problems list --level 1");
  return {app, [flags] { return list(flags->level, flags->json); }};
}

Command add_problems_show(CLI::App& problems) {
  struct Flags {
    std::string problem;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  auto* app = problems.add_subcommand("show", "One problem's source and hash");
  app->add_option("problem", flags->problem, "an id such as level1/19, or a problem file")
      ->required();
  app->add_flag("--json", flags->json, "print one JSON object");
  app->footer("Example:  kernelbench problems show level1/19");
  return {app, [flags] { return show(flags->problem, flags->json); }};
}

}  // namespace kb::cli
