// kernelbench baseline NAME: times the references, as they are and through torch.compile.
//
// Each mode is a run folder of candidates that are the problems' own models, judged as any other: a
// compiled reference is checked against the eager one, and timed in the same pairs. So it resumes,
// and what it stores are ordinary results.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/baseline.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/output_file.h"
#include "cli/problem_selection.h"
#include "cli/run.h"
#include "cli/scoring.h"
#include "problem/problem.h"
#include "score/baseline.h"
#include "score/run.h"

namespace kb::cli {
namespace {

namespace fs = std::filesystem;

struct BaselineFlags {
  std::string name;
  std::vector<std::string> modes = {"eager"};
  SelectionFlags selection;
  std::string ids, export_folder;
  RunFlags run;
};

const BaselineMode& mode_of(const std::string& name) {
  const auto found = std::ranges::find(kBaselineModes, name, &BaselineMode::name);
  if (found != kBaselineModes.end()) return *found;
  std::string known;
  for (const auto& mode : kBaselineModes)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", mode.name);
  throw UsageError(fmt::format("there is no mode '{}'; the modes are {}", name, known));
}

// The problem's model under the name that a candidate has.
std::string candidate_of(const problem::Problem& problem, const BaselineMode& mode) {
  if (mode.arguments.empty()) return problem.source + "\n\nModelNew = Model\n";
  return problem.source + fmt::format(R"(

import torch


class ModelNew(Model):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.forward = torch.compile(self.forward, {})
)",
                                      mode.arguments);
}

void write_file(const fs::path& path, const std::string& text) {
  std::error_code ignored;  // shows when the file is written
  fs::create_directories(path.parent_path(), ignored);
  write_output_file(path.string(), text);
}

// File names by problem id, and a folder of candidates that are the problems themselves.
std::map<std::string, std::string> write_samples(const Selection& selection, const std::string& ids,
                                                 const BaselineMode& mode, const fs::path& folder) {
  std::vector<int> wanted;
  if (!ids.empty()) wanted = value_or_usage_error(problem::parse_ranges(ids));
  std::map<std::string, std::string> names;
  for (const auto& entry : selection.catalog().entries()) {
    if (!selection.has(entry)) continue;
    if (!wanted.empty() && std::ranges::find(wanted, entry.id.number) == wanted.end()) continue;
    const auto problem = value_or_usage_error(selection.catalog().load(entry.id));
    if (!selection.has(entry, problem)) continue;
    names[entry.id.text()] = entry.path.filename().string();
    write_file(folder / fmt::format("level_{}_problem_{}_sample_0_kernel.py", entry.id.level,
                                    entry.id.number),
               candidate_of(problem, mode));
  }
  if (names.empty()) throw UsageError("no problem is selected");
  return names;
}

int baseline(const BaselineFlags& flags) {
  if (!problem::is_set_name(flags.name))
    throw UsageError(fmt::format("'{}' cannot be a baseline's name: letters, digits, '.', '_', '-'",
                                 flags.name));
  std::vector<const BaselineMode*> modes;
  for (const auto& name : flags.modes) modes.push_back(&mode_of(name));
  const Selection selection(flags.selection);
  const fs::path root = baselines_root() / flags.name;
  int code = kOk;
  for (const BaselineMode* mode : modes) {
    const fs::path folder = root / std::string(mode->name);
    const auto names = write_samples(selection, flags.ids, *mode, folder);
    auto run = flags.run;
    run.samples.folder = folder.string();
    run.samples.problems = flags.selection.set;
    run.samples.subset = flags.selection.subset;
    run.samples.ids = flags.ids;
    if (flags.selection.level > 0) run.samples.levels = {flags.selection.level};
    fmt::print("{} {}: {} problems\n", flags.name, mode->name, names.size());
    code = std::max(code, judge_folder(run));
    const auto judged = load_run(folder.string(), {});
    const auto side = mode->arguments.empty() ? score::Side::reference : score::Side::candidate;
    const auto times = score::baseline_json(judged.evaluations, names, side);
    std::size_t timed = 0;
    for (const auto& [level, problems] : times.items()) timed += problems.size();
    const fs::path file = root / std::string(mode->file);
    write_file(file, times.dump(2) + "\n");
    if (!flags.export_folder.empty())
      write_file(fs::path(flags.export_folder) / std::string(mode->file), times.dump(2) + "\n");
    fmt::print(
        "{} of {} problems have a time; use it with: kernelbench score DIR --baseline {}{}\n",
        timed, judged.evaluations.size(), flags.name,
        mode->arguments.empty() ? std::string() : fmt::format("/{}", mode->name));
  }
  return code;
}

}  // namespace

fs::path baselines_root() {
  return problem::data_root() / "baselines";
}

fs::path baseline_file(const std::string& name) {
  const auto slash = name.find('/');
  const std::string mode = slash == std::string::npos ? "eager" : name.substr(slash + 1);
  const auto known = std::ranges::find(kBaselineModes, mode, &BaselineMode::name);
  if (!problem::is_set_name(name.substr(0, slash)) || known == kBaselineModes.end()) return {};
  return baselines_root() / name.substr(0, slash) / std::string(known->file);
}

Command add_baseline(CLI::App& root) {
  auto flags = std::make_shared<BaselineFlags>();
  auto* app = root.add_subcommand("baseline", "Time the references: eager and torch.compile");
  app->add_option("name", flags->name, "what to call it, such as the card's name")->required();
  app->add_option("--mode", flags->modes,
                  "eager, default, reduce-overhead, max-autotune, max-autotune-no-cudagraphs, "
                  "cudagraphs (repeatable, or with commas)")
      ->delimiter(',')
      ->capture_default_str();
  add_selection_options(*app, flags->selection);
  app->add_option("--ids", flags->ids, "only these problem numbers, e.g. 1-10,19");
  app->add_option("--export", flags->export_folder,
                  "also write KernelBench's baseline files to this folder");
  add_judging_options(*app, flags->run.judging);
  app->footer(
      "Run it again to resume. Times are stored with their samples under "
      "~/.local/share/kernelbench/baselines/NAME.\n"
      "Example:  kernelbench baseline h200 --level 1 --mode eager,default --device cuda:0");
  return {app, [flags] { return baseline(*flags); }};
}

}  // namespace kb::cli
