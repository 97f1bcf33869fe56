// kernelbench problems import | export

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/judging.h"
#include "cli/problem_selection.h"
#include "exchange/exchange.h"
#include "problem/problem.h"
#include "worker/python_environment.h"

namespace kb::cli {
namespace {

namespace fs = std::filesystem;

struct HelperFlags {
  std::string sandbox = "auto";
  std::string python;
};

struct ImportFlags {
  HelperFlags helper;
  std::string source, name;
  int level = 0;
  bool replace = false, json = false;
};

struct ExportFlags {
  HelperFlags helper;
  SelectionFlags selection;
  std::string target;
};

void add_helper_options(CLI::App& app, HelperFlags& flags) {
  add_sandbox_option(app, flags.sandbox);
  app.add_option("--python", flags.python,
                 "the Python with pyarrow and datasets; default: an active virtual environment, "
                 ".venv, python3");
}

exchange::Environment environment_of(const HelperFlags& flags, sandbox::Launcher& launcher) {
  const auto root = problem::installation_root();
  auto python =
      value_or_usage_error(worker::probe_python(worker::choose_python(flags.python, root)));
  return {launcher, python.executable, python.folders, root / "python"};
}

// What a set is called when nobody says: "ScalingIntelligence/KernelBench" → "KernelBench".
std::string name_for(const ImportFlags& flags) {
  if (!flags.name.empty()) return flags.name;
  auto path = fs::path(flags.source).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.extension() == ".parquet" ? path.stem().string() : path.filename().string();
}

std::vector<exchange::Row> rows_of(const ImportFlags& flags) {
  std::error_code error;
  const auto level = flags.level > 0 ? std::optional(flags.level) : std::nullopt;
  if (fs::is_directory(flags.source, error) && exchange::is_problem_folder(flags.source, level))
    return value_or_usage_error(exchange::rows_of_folder(flags.source, level));
  const auto launcher = make_launcher({.sandbox = flags.helper.sandbox});
  const auto environment = environment_of(flags.helper, *launcher);
  if (fs::exists(flags.source, error))
    return value_or_usage_error(exchange::rows_of_dataset(environment, flags.source));
  // OWNER/NAME, and surely no path.
  if (std::ranges::count(flags.source, '/') != 1 || flags.source.starts_with('.') ||
      flags.source.starts_with('/'))
    throw UsageError(
        fmt::format("there is no '{}': give a folder of problem files, a .parquet file, a folder "
                    "that save_to_disk wrote, or "
                    "a dataset of the Hugging Face hub as OWNER/NAME",
                    problem::printable(flags.source)));
  return value_or_usage_error(exchange::rows_of_hub(environment, flags.source));
}

int import(const ImportFlags& flags) {
  const auto name = name_for(flags);
  if (!problem::is_set_name(name))
    throw UsageError(fmt::format(
        "'{}' cannot be the name of a set: use letters, digits, '.', '_' and '-' (--name NAME)",
        problem::printable(name)));
  const auto folder = problem::sets_root() / name;
  std::error_code error;
  if (fs::exists(folder, error) && !flags.replace)
    throw UsageError(
        fmt::format("there is a set {} already, in {}: give another --name, or --replace", name,
                    folder.string()));
  const auto result = exchange::accept(rows_of(flags));
  if (result.accepted.empty())
    throw UsageError(fmt::format(
        "nothing can be imported from {}{}{}", problem::printable(flags.source),
        result.refused.empty() ? "" : ": ", result.refused.empty() ? "" : result.refused.front()));
  if (flags.replace) fs::remove_all(folder, error);
  if (auto written = exchange::write_set(result, folder); !written)
    throw UsageError(written.error());
  if (flags.json) {
    fmt::print("{}\n", nlohmann::json{{"set", name},
                                      {"folder", folder.string()},
                                      {"imported", result.accepted.size()},
                                      {"refused", result.refused},
                                      {"duplicates", result.duplicates}}
                           .dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    for (const auto& refused : result.refused) fmt::print("left out: {}\n", refused);
    for (const auto& duplicate : result.duplicates) fmt::print("duplicate: {}\n", duplicate);
    fmt::print("{} problems are in {}; address them as {}:{}\n", result.accepted.size(),
               folder.string(), name, result.accepted.front().id.text());
  }
  return result.refused.empty() ? kOk : kFindings;
}

int export_set(const ExportFlags& flags) {
  const Selection selection(flags.selection);
  std::vector<problem::Problem> problems;
  for (const auto& entry : selection.catalog().entries()) {
    if (!selection.has(entry)) continue;
    auto problem = value_or_usage_error(selection.catalog().load(entry.id));
    if (selection.has(entry, problem)) problems.push_back(std::move(problem));
  }
  if (problems.empty())
    throw UsageError("no problem is selected by --level, --family, --name or --subset");
  const auto launcher = make_launcher({.sandbox = flags.helper.sandbox});
  const auto environment = environment_of(flags.helper, *launcher);
  if (auto written = exchange::write_dataset(environment, problems, flags.target); !written)
    throw UsageError(written.error());
  fmt::print("{} problems written to {}\n", problems.size(), flags.target);
  return kOk;
}

}  // namespace

Command add_problems_import(CLI::App& problems) {
  auto flags = std::make_shared<ImportFlags>();
  auto* app = problems.add_subcommand("import", "Make a set of a folder or a Hugging Face dataset");
  app->add_option("source", flags->source,
                  "a folder with level1/19_ReLU.py and the like; a .parquet file, a folder of "
                  "them, or what save_to_disk "
                  "wrote, with the columns code, level, name and problem_id; or OWNER/NAME of a "
                  "dataset on the hub")
      ->required();
  app->add_option("--name", flags->name, "of the set; default: the source's");
  app->add_option("--level", flags->level, "the folder's files are this level's")
      ->check(CLI::PositiveNumber);
  app->add_flag("--replace", flags->replace, "replace the set of that name");
  app->add_flag("--json", flags->json, "print one JSON object");
  add_helper_options(*app, flags->helper);
  app->footer(
      "Nothing that is imported is run. Rows that are no problems are named and left out (exit "
      "code 1).\n"
      "Example:  kernelbench problems import ~/KernelBench/KernelBench --name public\n"
      "          kernelbench eval public:level1/19 my_relu.cu");
  return {app, [flags] { return import(*flags); }};
}

Command add_problems_export(CLI::App& problems) {
  auto flags = std::make_shared<ExportFlags>();
  auto* app = problems.add_subcommand(
      "export", "Write a set as parquet, in the columns of a Hugging Face dataset");
  app->add_option("target", flags->target,
                  "a .parquet file, or a folder: one file a level in its folder data, which "
                  "`datasets` loads as splits")
      ->required();
  add_selection_options(*app, flags->selection);
  add_helper_options(*app, flags->helper);
  app->footer("Example:  kernelbench problems export set.parquet --level 1");
  return {app, [flags] { return export_set(*flags); }};
}

}  // namespace kb::cli
