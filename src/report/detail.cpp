#include "report/detail.h"

#include <fmt/format.h>

#include <set>

#include "problem/candidate.h"
#include "problem/id.h"
#include "problem/sample.h"
#include "problem/text_file.h"
#include "store/store.h"

namespace kb::report {
namespace {

namespace fs = std::filesystem;

using Key = std::pair<std::string, int>;

// level_1_problem_19_sample_0_turn_2.py taken apart; null for any other name.
struct TurnName {
  Key key;
  int turn = 0;
};
std::optional<TurnName> parse_turn_name(const fs::path& path) {
  const std::string name = path.stem().string();
  std::string_view rest = name;
  if (!problem::take_prefix(rest, "level_")) return std::nullopt;
  const auto level = problem::take_number(rest);
  if (!level || !problem::take_prefix(rest, "_problem_")) return std::nullopt;
  const auto number = problem::take_number(rest);
  if (!number || !problem::take_prefix(rest, "_sample_")) return std::nullopt;
  const auto sample = problem::take_number(rest);
  if (!sample || !problem::take_prefix(rest, "_turn_")) return std::nullopt;
  const auto turn = problem::take_number(rest);
  const std::string suffix = path.extension().string();
  if (!turn || !rest.empty() ||
      (suffix != ".py" && suffix != ".cpp" && suffix != ".cc" && suffix != ".cu" &&
       suffix != ".hip"))
    return std::nullopt;
  return TurnName{{problem::Id{*level, *number}.text(), *sample}, *turn};
}

std::map<Key, std::map<int, fs::path>> find_turns(const fs::path& folder) {
  std::map<Key, std::map<int, fs::path>> turns;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (const auto name = parse_turn_name(it->path())) turns[name->key][name->turn] = it->path();
  return turns;
}

void take_source(const fs::path& path, Detail& detail) {
  auto candidate = problem::load_candidate(path);
  if (!candidate) {
    detail.source_note = candidate.error();
    return;
  }
  const auto hash =
      detail.result.is_object() ? detail.result.find("candidate_hash") : detail.result.end();
  const bool has_hash = hash != detail.result.end() && hash->is_string();
  if (has_hash && hash->get<std::string>() != candidate->hash) {
    detail.source_note = fmt::format("{} has changed since it was judged, so it is not shown.",
                                     path.filename().string());
    return;
  }
  if (!has_hash)
    detail.source_note = "The result does not say which version of this file was judged.";
  detail.source = Source{path.filename().string(), std::move(candidate->source)};
}

}  // namespace

std::expected<Details, std::string> load_details(
    const fs::path& run, const std::vector<score::Evaluation>& evaluations) {
  Details details;
  for (const auto& evaluation : evaluations) details[{evaluation.problem, evaluation.sample}];

  std::error_code error;
  const bool is_folder = fs::is_directory(run, error);
  fs::path folder = is_folder ? run : run.parent_path();
  if (folder.empty()) folder = ".";
  const fs::path database = is_folder ? run / "kernelbench.db" : run;
  if (database.extension() != ".json" && fs::exists(database, error)) {
    auto store = store::Store::open(database);
    if (!store) return std::unexpected(store.error());
    const auto rows = store->rows();
    if (!rows) return std::unexpected(rows.error());
    for (const auto& row : *rows) {
      const auto evaluation = score::parse_evaluation(row.result_json);
      if (!evaluation) return std::unexpected(evaluation.error());
      const auto it = details.find({evaluation->problem, evaluation->sample});
      if (it == details.end()) continue;
      it->second.result = nlohmann::json::parse(row.result_json);
      it->second.finished_at = row.finished_at;
    }
  }

  std::map<Key, fs::path> files;
  if (const auto samples = problem::find_samples(folder))
    for (const auto& sample : *samples) files[{sample.id.text(), sample.sample}] = sample.path;
  const auto turns = find_turns(folder);
  for (auto& [key, detail] : details) {
    if (const auto file = files.find(key); file != files.end())
      take_source(file->second, detail);
    else
      detail.source_note = "Its file is not in the run's folder.";
    const auto earlier = turns.find(key);
    if (earlier == turns.end()) continue;
    for (const auto& [turn, path] : earlier->second)
      if (auto text = problem::read_text_file(path);
          text && !(detail.source && *text == detail.source->text))
        detail.earlier.push_back({path.filename().string(), std::move(*text)});
  }
  return details;
}

}  // namespace kb::report
