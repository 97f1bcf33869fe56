#include "score/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include "problem/id.h"
#include "problem/sample.h"
#include "problem/text_file.h"
#include "score/kernelbench_files.h"
#include "score/table.h"
#include "store/store.h"

namespace kb::score {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDatabase = "kernelbench.db";
constexpr std::uintmax_t kMaxBytes = std::uintmax_t{512} << 20;

std::string shown(const fs::path& path) {
  return problem::printable(path.string());
}

std::expected<std::vector<Evaluation>, std::string> load_database(const fs::path& file) {
  const std::string folder = shown(file.parent_path().empty() ? "." : file.parent_path());
  auto store = store::Store::open(file);
  if (!store) return std::unexpected(store.error());
  auto rows = store->rows();
  if (!rows) return std::unexpected(rows.error());
  std::vector<Evaluation> evaluations;
  for (const auto& row : *rows) {
    auto evaluation = parse_evaluation(row.result_json);
    if (!evaluation)
      return std::unexpected(
          fmt::format("{}: a result is damaged ({}): run `kernelbench run {}` again", shown(file),
                      evaluation.error(), folder));
    evaluations.push_back(std::move(*evaluation));
  }
  if (evaluations.empty())
    return std::unexpected(
        fmt::format("{} holds no result yet: run kernelbench run {}", shown(file), folder));
  return evaluations;
}

// The level in "eval_results_level2.json"; 0: none.
int level_in_name(const fs::path& file) {
  const std::string stem = file.stem().string();
  std::string_view rest = stem;
  if (!problem::take_prefix(rest, "eval_results_level")) return 0;
  const auto level = problem::take_number(rest);
  return level && rest.empty() ? *level : 0;
}

// The level that all sample files of a folder have, or its settings name; 0: unknown.
int level_of_folder(const fs::path& folder) {
  if (const auto samples = problem::find_samples(folder)) {
    std::set<int> levels;
    for (const auto& sample : *samples) levels.insert(sample.id.level);
    return levels.size() == 1 ? *levels.begin() : 0;
  }
  for (const char* name : {"generation_config.yaml", "eval_config.yaml"}) {
    const auto text = problem::read_text_file(folder / name);
    if (!text) continue;
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
      std::string_view rest = line;
      if (!problem::take_prefix(rest, "level:")) continue;
      while (problem::take_prefix(rest, " ")) {
      }
      if (const auto level = problem::take_number(rest)) return *level;
    }
  }
  return 0;
}

std::expected<std::vector<Evaluation>, std::string> load_eval_results(const fs::path& file,
                                                                      int level) {
  const auto text = read_results_file(file);
  if (!text) return std::unexpected(text.error());
  // What is written down is surer than what is asked for: --level chooses, too.
  int known = level_in_name(file);
  if (known == 0) known = level_of_folder(file.parent_path().empty() ? "." : file.parent_path());
  if (known > 0) level = known;
  auto evaluations = parse_eval_results(*text, level);
  if (!evaluations) return std::unexpected(fmt::format("{}: {}", shown(file), evaluations.error()));
  if (evaluations->empty()) return std::unexpected(fmt::format("{} holds no result", shown(file)));
  return evaluations;
}

// eval_results.json, or else those by level.
std::vector<fs::path> results_in(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "eval_results.json", error)) return {folder / "eval_results.json"};
  std::vector<fs::path> files;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".json" && level_in_name(it->path()) > 0)
      files.push_back(it->path());
  std::ranges::sort(files);
  return files;
}

void note_conditions(Run& run) {
  std::set<std::string> conditions;
  for (const auto& evaluation : run.evaluations)
    if (!evaluation.conditions.empty()) conditions.insert(clean(evaluation.conditions));
  if (conditions.size() < 2) return;
  std::string list;
  for (const auto& each : conditions) list += (list.empty() ? "" : "; ") + each;
  run.notes.push_back(
      fmt::format("{}: results under different conditions are together here: {}", run.name, list));
}

}  // namespace

std::expected<std::string, std::string> read_results_file(const fs::path& path) {
  const auto fail = [&](const char* what) {
    return std::unexpected(fmt::format("{} {}", shown(path), what));
  };
  std::error_code error;
  const auto status = fs::status(path, error);
  if (!fs::exists(status)) return fail("does not exist");
  // A FIFO would block.
  if (!fs::is_regular_file(status)) return fail("is not a regular file");
  if (fs::file_size(path, error) > kMaxBytes) return fail("is larger than 512 MiB");
  std::ifstream stream(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream) return fail("cannot be read; check its permissions");
  return text;
}

std::expected<Run, std::string> load_run(const fs::path& path, int level) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (!fs::exists(status))
    return std::unexpected(
        fmt::format("there is no {}: give a folder that `kernelbench run` has judged, or one with "
                    "KernelBench's eval_results.json",
                    shown(path)));
  const bool is_folder = fs::is_directory(status);
  const fs::path folder = is_folder ? path : path.parent_path().empty() ? "." : path.parent_path();

  Run run;
  // "runs/a/" ends in an empty part.
  const fs::path named = fs::absolute(folder, error).lexically_normal();
  run.name = (named.has_filename() ? named : named.parent_path()).filename().string();
  std::vector<fs::path> results;
  if (!is_folder && path.extension() == ".json")
    results = {path};
  else if (is_folder && !fs::exists(path / kDatabase, error))
    results = results_in(path);
  const fs::path database = is_folder ? path / kDatabase : path;
  if (is_folder && results.empty() && !fs::exists(database, error))
    return std::unexpected(
        fmt::format("there is no {} and no eval_results.json: judge the folder first with: "
                    "kernelbench run {}",
                    shown(database), shown(path)));
  if (results.empty()) {
    auto evaluations = load_database(database);
    if (!evaluations) return std::unexpected(evaluations.error());
    run.evaluations = std::move(*evaluations);
  }
  for (const auto& file : results) {
    auto evaluations = load_eval_results(file, level);
    if (!evaluations) return std::unexpected(evaluations.error());
    std::ranges::move(*evaluations, std::back_inserter(run.evaluations));
  }
  const fs::path passes = folder / "pass_at_k_results.json";
  if (!results.empty() && fs::exists(passes, error)) {
    const auto text = read_results_file(passes);
    if (!text) return std::unexpected(text.error());
    auto averages = parse_pass_at_k(*text);
    if (!averages) return std::unexpected(fmt::format("{}: {}", shown(passes), averages.error()));
    run.reported_pass_at_k = std::move(*averages);
  }
  note_conditions(run);
  return run;
}

}  // namespace kb::score
