#include "score/score.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>

#include "score/bootstrap.h"

namespace kb::score {
namespace {

constexpr std::array kThresholds = {0.0, 0.5, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0};
constexpr int kMaxK = 10;

bool verified(const Evaluation& evaluation, double p) {
  return evaluation.faster_than(p) &&
         std::none_of(evaluation.flags.begin(), evaluation.flags.end(), disqualifies) &&
         evaluation.ci_low && evaluation.ci_high && std::isfinite(*evaluation.ci_high) &&
         *evaluation.ci_low > p && *evaluation.ci_low <= *evaluation.ci_high;
}

// The chance that of k samples out of n, of which c are correct, at least one is: 1 − C(n−c, k) /
// C(n, k), as a product of ratios.
double pass_at(int n, int c, int k) {
  if (n - c < k) return 1;
  double none = 1;
  for (int i = n - c + 1; i <= n; ++i) none *= 1 - static_cast<double>(k) / i;
  return 1 - none;
}

class GeometricMean {
 public:
  void add(double value) {
    sum_ += std::log(value);
    ++count_;
  }
  std::optional<double> value() const {
    return count_ == 0 ? std::nullopt : std::optional(std::exp(sum_ / count_));
  }

 private:
  double sum_ = 0;
  int count_ = 0;
};

Summary summarize_group(std::string name, const std::vector<const Evaluation*>& evaluations) {
  Summary summary;
  summary.name = std::move(name);
  std::map<std::string_view, std::vector<const Evaluation*>> problems;
  for (const Evaluation* evaluation : evaluations) {
    ++summary.verdicts[evaluation->verdict];
    if (!evaluation->counts) {
      ++summary.infrastructure_errors;
      continue;
    }
    ++summary.samples;
    problems[evaluation->problem].push_back(evaluation);
  }
  summary.problems = static_cast<int>(problems.size());

  std::vector<const Evaluation*> counting;
  std::size_t fewest_samples = problems.empty() ? 1 : kMaxK;
  for (const auto& [problem, samples] : problems) {
    counting.push_back(*std::min_element(
        samples.begin(), samples.end(),
        [](const Evaluation* a, const Evaluation* b) { return a->sample < b->sample; }));
    fewest_samples = std::min(fewest_samples, samples.size());
  }

  GeometricMean correct;
  GeometricMean faster;
  std::vector<std::vector<bool>> hits;
  std::vector<int> verified_hits(kThresholds.size(), 0);
  for (const Evaluation* evaluation : counting) {
    if (evaluation->correct) ++summary.correct;
    if (evaluation->faster_than(1)) ++summary.faster;
    if (evaluation->faster_than(0)) correct.add(*evaluation->speedup);
    if (evaluation->faster_than(1)) faster.add(*evaluation->speedup);
    std::vector<bool>& row = hits.emplace_back();
    for (std::size_t i = 0; i < kThresholds.size(); ++i) {
      row.push_back(evaluation->faster_than(kThresholds[i]));
      if (verified(*evaluation, kThresholds[i])) ++verified_hits[i];
    }
  }
  summary.geomean_correct = correct.value();
  summary.geomean_correct_and_faster = faster.value();

  const std::vector<Interval> intervals = bootstrap_fractions(hits, kThresholds.size());
  for (std::size_t i = 0; i < kThresholds.size(); ++i) {
    const auto count = std::count_if(hits.begin(), hits.end(),
                                     [i](const std::vector<bool>& row) { return row[i]; });
    const double all = std::max<double>(1, summary.problems);
    summary.fast_p.push_back({kThresholds[i], static_cast<double>(count) / all, intervals[i],
                              static_cast<double>(verified_hits[i]) / all});
  }
  for (int k = 1; k <= static_cast<int>(fewest_samples) && !problems.empty(); ++k) {
    double sum = 0;
    for (const auto& [problem, samples] : problems) {
      const auto right = std::count_if(samples.begin(), samples.end(),
                                       [](const Evaluation* e) { return e->correct; });
      sum += pass_at(static_cast<int>(samples.size()), static_cast<int>(right), k);
    }
    summary.pass_at_k[k] = sum / static_cast<double>(problems.size());
  }
  return summary;
}

nlohmann::json or_null(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace

bool disqualifies(const std::string& flag) {
  return flag != "launch_bound" && flag != "library_call" && flag != "noisy";
}

std::vector<Summary> summarize(const std::vector<Evaluation>& evaluations) {
  std::vector<const Evaluation*> all;
  std::map<int, std::vector<const Evaluation*>> levels;
  for (const Evaluation& evaluation : evaluations) {
    all.push_back(&evaluation);
    if (evaluation.level > 0) levels[evaluation.level].push_back(&evaluation);
  }
  std::vector<Summary> summaries{summarize_group("all", all)};
  for (const auto& [level, group] : levels)
    summaries.push_back(summarize_group("level" + std::to_string(level), group));
  return summaries;
}

nlohmann::json to_json(const std::vector<Summary>& summaries) {
  nlohmann::json result = nlohmann::json::array();
  for (const Summary& summary : summaries) {
    nlohmann::json fast_p = nlohmann::json::array();
    for (const FastP& each : summary.fast_p) {
      fast_p.push_back({{"p", each.p},
                        {"value", each.value},
                        {"ci95", nlohmann::json::array({each.ci95.low, each.ci95.high})},
                        {"verified", each.verified}});
    }
    nlohmann::json pass_at_k = nlohmann::json::object();
    for (const auto& [k, value] : summary.pass_at_k) pass_at_k[std::to_string(k)] = value;
    result.push_back({{"name", summary.name},
                      {"problems", summary.problems},
                      {"samples", summary.samples},
                      {"correct", summary.correct},
                      {"faster", summary.faster},
                      {"infrastructure_errors", summary.infrastructure_errors},
                      {"verdicts", summary.verdicts},
                      {"fast_p", std::move(fast_p)},
                      {"geomean_correct", or_null(summary.geomean_correct)},
                      {"geomean_correct_and_faster", or_null(summary.geomean_correct_and_faster)},
                      {"pass_at_k", std::move(pass_at_k)}});
  }
  return result;
}

}  // namespace kb::score
