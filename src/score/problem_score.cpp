#include "score/problem_score.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace kb::score {
namespace {

std::optional<double> geometric_mean(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

std::optional<double> combine(const std::vector<double>& speedups, SampleRule rule) {
  if (rule != SampleRule::best || speedups.empty()) return geometric_mean(speedups);
  return *std::max_element(speedups.begin(), speedups.end());
}

// `counting` holds at least one.
void score_samples(const std::vector<const Evaluation*>& counting, const Options& options,
                   ProblemScore& score) {
  // A mean over the samples, or whether there is one.
  const auto share = [&](const auto& holds) {
    const auto count = static_cast<double>(std::count_if(counting.begin(), counting.end(), holds));
    return options.samples == SampleRule::best ? std::min(count, 1.0)
                                               : count / static_cast<double>(counting.size());
  };
  score.correct = share([](const Evaluation* e) { return e->correct; });
  score.solved = score.correct > 0;
  for (const double p : options.thresholds) {
    score.fast.push_back(share([p](const Evaluation* e) { return e->faster_than(p); }));
    score.verified.push_back(
        share([p](const Evaluation* e) { return e->verified_faster_than(p); }));
  }
  std::vector<double> speedups, over_one;
  const Evaluation* source = nullptr;  // of the speedup, where it is one sample's
  for (const Evaluation* e : counting) {
    if (!e->faster_than(0)) continue;
    if (options.samples == SampleRule::best && source != nullptr)
      source = *e->speedup > *source->speedup ? e : source;
    else
      source = speedups.empty() ? e : nullptr;
    speedups.push_back(*e->speedup);
    if (e->faster_than(1)) over_one.push_back(*e->speedup);
  }
  score.speedup = combine(speedups, options.samples);
  score.speedup_if_faster = combine(over_one, options.samples);
  score.faster = !over_one.empty();
  score.untimed = score.solved && speedups.empty();
  if (source != nullptr && source->has_interval())
    score.speedup_ci95 = {*source->ci_low, *source->ci_high};
}

}  // namespace

std::string_view name_of(SampleRule rule) {
  switch (rule) {
    case SampleRule::average: return "average";
    case SampleRule::first: return "first";
    case SampleRule::best: return "best";
  }
  return "average";
}

std::optional<SampleRule> parse_sample_rule(std::string_view word) {
  for (const auto rule : {SampleRule::average, SampleRule::first, SampleRule::best})
    if (word == name_of(rule)) return rule;
  return std::nullopt;
}

std::vector<ProblemScore> score_problems(const std::vector<const Evaluation*>& evaluations,
                                         const Options& options) {
  std::map<std::string, std::vector<const Evaluation*>, ProblemLess> problems;
  for (const std::string& problem : options.set) problems[problem];
  for (const Evaluation* evaluation : evaluations)
    if (evaluation->counts) problems[evaluation->problem].push_back(evaluation);

  std::vector<ProblemScore> scores;
  for (const auto& [problem, samples] : problems) {
    ProblemScore& score = scores.emplace_back();
    score.problem = problem;
    score.level = level_of(problem);
    score.samples = static_cast<int>(samples.size());
    score.correct_samples = static_cast<int>(std::count_if(
        samples.begin(), samples.end(), [](const Evaluation* e) { return e->correct; }));
    if (samples.empty()) {
      score.fast.assign(options.thresholds.size(), 0);
      score.verified = score.fast;
    } else if (options.samples == SampleRule::first) {
      score_samples({*std::min_element(samples.begin(), samples.end(),
                                       [](const Evaluation* a, const Evaluation* b) {
                                         return a->sample < b->sample;
                                       })},
                    options, score);
    } else {
      score_samples(samples, options, score);
    }
  }
  return scores;
}

double pass_at(int n, int c, int k) {
  if (n - c < k) return 1;
  // As a product of ratios, which does not overflow.
  double none = 1;
  for (int i = n - c + 1; i <= n; ++i) none *= 1 - static_cast<double>(k) / i;
  return 1 - none;
}

}  // namespace kb::score
