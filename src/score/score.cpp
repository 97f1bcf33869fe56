#include "score/score.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

namespace kb::score {
namespace {

constexpr int kMaxK = 10;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::vector<int> ks_for(const std::vector<ProblemScore>& problems, const Options& options) {
  if (!options.ks.empty()) return options.ks;
  int fewest = kMaxK;
  bool any = false;
  for (const auto& problem : problems) {
    if (problem.samples == 0) continue;
    fewest = std::min(fewest, problem.samples);
    any = true;
  }
  std::vector<int> ks;
  for (int k = 1; any && k <= fewest; ++k) ks.push_back(k);
  return ks;
}

// Nobody's samples solve a problem that nobody attempted, however many; too few tell nothing.
double pass_of(const ProblemScore& problem, int k) {
  if (problem.samples == 0) return 0;
  return problem.samples < k ? kNone : pass_at(problem.samples, problem.correct_samples, k);
}

std::optional<Estimate> exponential(const std::optional<Estimate>& logarithm) {
  if (!logarithm) return std::nullopt;
  return Estimate{std::exp(logarithm->value),
                  {std::exp(logarithm->ci95.low), std::exp(logarithm->ci95.high)}};
}

double log_or_none(const std::optional<double>& value) {
  return value ? std::log(*value) : kNone;
}

Summary summarize_group(Summary::Kind kind, std::string name,
                        const std::vector<const Evaluation*>& evaluations, const Options& options) {
  Summary summary;
  summary.kind = kind;
  summary.name = std::move(name);
  summary.sample_rule = options.samples;
  summary.over = options.over;
  for (const Evaluation* evaluation : evaluations) {
    ++summary.verdicts[evaluation->verdict];
    ++(evaluation->counts ? summary.samples : summary.infrastructure_errors);
  }
  const std::vector<ProblemScore> problems = score_problems(evaluations, options);
  const std::vector<int> ks = ks_for(problems, options);

  // The columns: correct, fast_p, verified fast_p, two log speedups, pass@k.
  const std::size_t thresholds = options.thresholds.size();
  const std::size_t verified_column = 1 + thresholds;
  const std::size_t speedup_column = verified_column + thresholds;
  const std::size_t pass_column = speedup_column + 2;
  std::vector<std::vector<double>> rows;
  for (const ProblemScore& problem : problems) {
    summary.attempted += problem.samples > 0 ? 1 : 0;
    summary.correct += problem.solved ? 1 : 0;
    summary.faster += problem.faster ? 1 : 0;
    summary.untimed += problem.untimed ? 1 : 0;
    auto& row = rows.emplace_back();
    row.push_back(problem.correct);
    std::ranges::copy(problem.fast, std::back_inserter(row));
    std::ranges::copy(problem.verified, std::back_inserter(row));
    row.push_back(log_or_none(problem.speedup));
    row.push_back(log_or_none(problem.speedup_if_faster));
    for (const int k : ks) row.push_back(pass_of(problem, k));
  }
  summary.problems = static_cast<int>(problems.size());

  const auto estimates = bootstrap_means(rows, pass_column + ks.size());
  const auto estimate = [&](std::size_t column) { return estimates[column].value_or(Estimate{}); };
  summary.correct_rate = estimate(0);
  for (std::size_t i = 0; i < thresholds; ++i) {
    const Estimate fast = estimate(1 + i);
    const Estimate verified = estimate(verified_column + i);
    summary.fast_p.push_back(
        {options.thresholds[i], fast.value, fast.ci95, verified.value, verified.ci95});
  }
  summary.geomean_correct = exponential(estimates[speedup_column]);
  summary.geomean_correct_and_faster = exponential(estimates[speedup_column + 1]);
  for (std::size_t i = 0; i < ks.size(); ++i) {
    const auto have = std::ranges::count_if(
        rows, [&](const auto& row) { return !std::isnan(row[pass_column + i]); });
    summary.pass_at_k[ks[i]] = {estimates[pass_column + i], static_cast<int>(have)};
  }
  return summary;
}

nlohmann::json pair_of(const Interval& interval) {
  return nlohmann::json::array({interval.low, interval.high});
}

nlohmann::json value_of(const std::optional<Estimate>& estimate) {
  return estimate ? nlohmann::json(estimate->value) : nlohmann::json(nullptr);
}

nlohmann::json interval_of(const std::optional<Estimate>& estimate) {
  return estimate ? pair_of(estimate->ci95) : nlohmann::json(nullptr);
}

const char* name_of(Summary::Kind kind) {
  switch (kind) {
    case Summary::Kind::all: return "all";
    case Summary::Kind::level: return "level";
    case Summary::Kind::backend: return "backend";
  }
  return "all";
}

std::vector<const Evaluation*> pointers(const std::vector<Evaluation>& evaluations) {
  std::vector<const Evaluation*> all;
  for (const Evaluation& evaluation : evaluations) all.push_back(&evaluation);
  return all;
}

}  // namespace

Summary summarize_all(const std::vector<Evaluation>& evaluations, const Options& options) {
  return summarize_group(Summary::Kind::all, "all", pointers(evaluations), options);
}

std::vector<Summary> summarize(const std::vector<Evaluation>& evaluations, const Options& options) {
  std::map<int, std::vector<const Evaluation*>> levels;
  std::map<std::string, std::vector<const Evaluation*>> backends;
  for (const Evaluation& evaluation : evaluations) {
    if (evaluation.level > 0) levels[evaluation.level].push_back(&evaluation);
    if (!evaluation.backend.empty()) backends[evaluation.backend].push_back(&evaluation);
  }
  std::map<int, std::set<std::string, ProblemLess>> sets;
  for (const std::string& problem : options.set) {
    sets[level_of(problem)].insert(problem);
    if (level_of(problem) > 0) levels[level_of(problem)];
  }
  std::vector<Summary> summaries{summarize_all(evaluations, options)};
  for (const auto& [level, group] : levels) {
    Options own = options;
    own.set = sets[level];
    summaries.push_back(
        summarize_group(Summary::Kind::level, "level" + std::to_string(level), group, own));
  }
  for (const auto& [backend, group] : backends)
    summaries.push_back(summarize_group(Summary::Kind::backend, backend, group, options));
  return summaries;
}

nlohmann::json to_json(const Summary& summary) {
  nlohmann::json fast_p = nlohmann::json::array();
  for (const FastP& each : summary.fast_p) {
    fast_p.push_back({{"p", each.p},
                      {"value", each.value},
                      {"ci95", pair_of(each.ci95)},
                      {"verified", each.verified},
                      {"verified_ci95", pair_of(each.verified_ci95)}});
  }
  auto pass_at_k = nlohmann::json::object();
  auto pass_at_k_ci95 = nlohmann::json::object();
  auto pass_at_k_problems = nlohmann::json::object();
  for (const auto& [k, pass] : summary.pass_at_k) {
    pass_at_k[std::to_string(k)] = value_of(pass.estimate);
    pass_at_k_ci95[std::to_string(k)] = interval_of(pass.estimate);
    pass_at_k_problems[std::to_string(k)] = pass.problems;
  }
  return {{"kind", name_of(summary.kind)},
          {"name", summary.name},
          {"sample_rule", std::string(name_of(summary.sample_rule))},
          {"over", summary.over},
          {"bootstrap", {{"resamples", kResamples}, {"seed", kSeed}}},
          {"problems", summary.problems},
          {"attempted", summary.attempted},
          {"samples", summary.samples},
          {"correct", summary.correct},
          {"correct_rate", summary.correct_rate.value},
          {"correct_rate_ci95", pair_of(summary.correct_rate.ci95)},
          {"faster", summary.faster},
          {"untimed", summary.untimed},
          {"infrastructure_errors", summary.infrastructure_errors},
          {"verdicts", summary.verdicts},
          {"fast_p", std::move(fast_p)},
          {"geomean_correct", value_of(summary.geomean_correct)},
          {"geomean_correct_ci95", interval_of(summary.geomean_correct)},
          {"geomean_correct_and_faster", value_of(summary.geomean_correct_and_faster)},
          {"geomean_correct_and_faster_ci95", interval_of(summary.geomean_correct_and_faster)},
          {"pass_at_k", std::move(pass_at_k)},
          {"pass_at_k_ci95", std::move(pass_at_k_ci95)},
          {"pass_at_k_problems", std::move(pass_at_k_problems)}};
}

nlohmann::json to_json(const std::vector<Summary>& summaries) {
  nlohmann::json result = nlohmann::json::array();
  for (const Summary& summary : summaries) result.push_back(to_json(summary));
  return result;
}

}  // namespace kb::score
