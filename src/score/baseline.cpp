#include "score/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "flag/flag.h"
#include "measure/statistics.h"
#include "problem/id.h"
#include "score/kernelbench_files.h"
#include "score/table.h"

namespace kb::score {
namespace {

using Json = nlohmann::ordered_json;

// The number of "19_ReLU.py".
std::optional<int> number_of(std::string_view name) {
  const auto number = problem::take_number(name);
  if (!number || *number < 1 || (!name.empty() && name[0] != '_' && name[0] != '.'))
    return std::nullopt;
  return number;
}

std::optional<double> positive_us(const Json& entry, const char* member) {
  const auto it = entry.find(member);
  if (it == entry.end() || !it->is_number()) return std::nullopt;
  const double us = it->get<double>() * 1000;
  return std::isfinite(us) && us > 0 ? std::optional(us) : std::nullopt;
}

// Ours have a median, as a sample's time is one: a few slow turns would make a mean of any size.
std::optional<double> time_of(const Json& entry) {
  if (!entry.is_object()) return std::nullopt;
  const auto median = positive_us(entry, "median");
  return median ? median : positive_us(entry, "mean");
}

}  // namespace

std::expected<Baseline, std::string> Baseline::parse(std::string_view text) {
  const auto json = parse_python_json(text);
  if (!json) return std::unexpected(json.error());
  const std::string foreign =
      "it is not a baseline, which holds \"level1\" and the like, and in these \"19_ReLU.py\"";
  if (!json->is_object()) return std::unexpected(foreign);
  Baseline baseline;
  for (const auto& [level_name, entries] : json->items()) {
    std::string_view rest = level_name;
    if (!problem::take_prefix(rest, "level")) return std::unexpected(foreign);
    const auto level = problem::take_number(rest);
    if (!level || *level < 1 || !rest.empty() || !entries.is_object())
      return std::unexpected(foreign);
    for (const auto& [name, entry] : entries.items()) {
      const auto number = number_of(name);
      if (!number) return std::unexpected(foreign);
      const auto time = time_of(entry);
      if (!time) continue;
      const std::string id = problem::Id{*level, *number}.text();
      const auto [known, fresh] = baseline.times_us_.emplace(id, *time);
      if (!fresh && known->second != *time)
        return std::unexpected(fmt::format("it holds two times of {}", id));
    }
  }
  if (baseline.times_us_.empty()) return std::unexpected("it holds no time");
  return baseline;
}

std::optional<double> Baseline::time_us(const std::string& problem) const {
  const auto it = times_us_.find(problem);
  return it == times_us_.end() ? std::nullopt : std::optional(it->second);
}

std::vector<std::string> use_baseline(const Baseline& baseline,
                                      std::vector<Evaluation>& evaluations) {
  std::set<std::string, ProblemLess> without;
  for (Evaluation& evaluation : evaluations) {
    evaluation.reference_time_us = baseline.time_us(evaluation.problem);
    evaluation.speedup = evaluation.ci_low = evaluation.ci_high = evaluation.at_least =
        std::nullopt;
    if (!evaluation.time_us) continue;
    if (!evaluation.reference_time_us) {
      without.insert(evaluation.problem);
      continue;
    }
    evaluation.speedup = *evaluation.reference_time_us / *evaluation.time_us;
    add_flag(evaluation.flags, "stored_baseline");
  }
  return {without.begin(), without.end()};
}

Json baseline_json(const std::vector<Evaluation>& evaluations,
                   const std::map<std::string, std::string>& names, Side side) {
  struct Times {
    std::vector<double> us;
    std::string conditions;
  };
  std::map<std::string, Times, ProblemLess> problems;
  for (const Evaluation& evaluation : evaluations) {
    if (evaluation.level < 1) continue;
    const bool own = side == Side::candidate;
    if (own && !evaluation.correct) continue;
    Times& times = problems[evaluation.problem];
    const auto& turns = own ? evaluation.times_us : evaluation.reference_times_us;
    const auto& one = own ? evaluation.time_us : evaluation.reference_time_us;
    if (!turns.empty())
      std::ranges::copy(turns, std::back_inserter(times.us));
    else if (one)
      times.us.push_back(*one);
    times.conditions = evaluation.conditions;
  }
  Json json = Json::object();
  for (const auto& [problem, times] : problems) {
    if (times.us.empty()) continue;
    const auto count = static_cast<double>(times.us.size());
    double mean = 0;
    for (const double us : times.us) mean += us / count;
    double squares = 0;
    for (const double us : times.us) squares += (us - mean) * (us - mean) / count;
    const auto [least, most] = std::ranges::minmax(times.us);
    const auto name = names.find(problem);
    json["level" + std::to_string(level_of(problem))]
        [name == names.end() ? problem.substr(problem.find('/') + 1) + ".py" : name->second] = {
            {"mean", mean / 1000},
            {"std", std::sqrt(squares) / 1000},
            {"min", least / 1000},
            {"max", most / 1000},
            {"num_trials", times.us.size()},
            {"hardware", times.conditions},
            {"median", measure::median(times.us) / 1000}};
  }
  return json;
}

}  // namespace kb::score
