#include "score/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace kb::score {
namespace {

std::map<std::string, ProblemScore, ProblemLess> scores_of(const Run& run, const Options& options) {
  std::vector<const Evaluation*> evaluations;
  for (const auto& evaluation : run.evaluations) evaluations.push_back(&evaluation);
  std::map<std::string, ProblemScore, ProblemLess> scores;
  for (auto& score : score_problems(evaluations, options)) scores.emplace(score.problem, score);
  return scores;
}

Outcome outcome_of(const ProblemScore& base, const ProblemScore& other) {
  if (!base.solved || !other.solved) {
    if (base.solved) return Outcome::only_base;
    return other.solved ? Outcome::only_other : Outcome::neither;
  }
  if (!base.speedup || !other.speedup) return Outcome::untimed;
  if (*other.speedup == *base.speedup) return Outcome::equal;
  return *other.speedup > *base.speedup ? Outcome::faster : Outcome::slower;
}

void count(Discordance& discordance, double base, double other) {
  if (base > other)
    ++discordance.base_better;
  else if (other > base)
    ++discordance.other_better;
  else
    ++(base > 0 ? discordance.tied_yes : discordance.tied_no);
}

std::set<std::string> conditions_of(const Run& run) {
  std::set<std::string> conditions;
  for (const auto& evaluation : run.evaluations)
    if (!evaluation.conditions.empty()) conditions.insert(evaluation.conditions);
  return conditions;
}

int occurrences(const Comparison& comparison, Outcome outcome, bool clear_only = false) {
  return static_cast<int>(std::ranges::count_if(comparison.problems, [&](const Pairing& pairing) {
    return pairing.outcome == outcome && (pairing.clear || !clear_only);
  }));
}

std::vector<std::string> problems_with(const Comparison& comparison, Outcome outcome) {
  std::vector<std::string> problems;
  for (const auto& pairing : comparison.problems)
    if (pairing.outcome == outcome) problems.push_back(pairing.problem);
  return problems;
}

nlohmann::json to_json(const Discordance& discordance) {
  return {{"base_better", discordance.base_better},
          {"other_better", discordance.other_better},
          {"tied_yes", discordance.tied_yes},
          {"tied_no", discordance.tied_no},
          {"p_value", discordance.p_value},
          {"difference", discordance.difference.value},
          {"difference_ci95", {discordance.difference.ci95.low, discordance.difference.ci95.high}}};
}

nlohmann::json side(const ProblemScore& score) {
  return {{"samples", score.samples},
          {"correct", score.correct},
          {"fast_1", score.fast.front()},
          {"speedup", score.speedup ? nlohmann::json(*score.speedup) : nlohmann::json(nullptr)},
          {"speedup_ci95", score.speedup_ci95
                               ? nlohmann::json{score.speedup_ci95->low, score.speedup_ci95->high}
                               : nlohmann::json(nullptr)}};
}

std::string list_of(const char* words, const std::vector<std::string>& problems) {
  if (problems.empty()) return "";
  constexpr std::size_t kMost = 30;
  std::string list = fmt::format("{} ({}): ", words, problems.size());
  for (std::size_t i = 0; i < problems.size() && i < kMost; ++i)
    list += (i > 0 ? ", " : "") + clean(problems[i]);
  return problems.size() > kMost ? list + ", …" : list;
}

std::string speedup_cell(const ProblemScore& score) {
  if (!score.solved) return "wrong";
  return score.speedup ? factor_text(*score.speedup) : "correct";
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::faster: return "faster";
    case Outcome::slower: return "slower";
    case Outcome::equal: return "equal";
    case Outcome::untimed: return "untimed";
    case Outcome::only_base: return "only_base";
    case Outcome::only_other: return "only_other";
    case Outcome::neither: return "neither";
  }
  return "neither";
}

double sign_test(int base_better, int other_better) {
  const int all = base_better + other_better;
  const int fewer = std::min(base_better, other_better);
  if (all == 0) return 1;
  double tail = 0;
  for (int i = 0; i <= fewer; ++i)
    tail += std::exp(std::lgamma(all + 1.0) - std::lgamma(i + 1.0) - std::lgamma(all - i + 1.0) -
                     all * std::log(2.0));
  return std::min(1.0, 2 * tail);
}

Comparison compare(const Run& base, const Run& other, Options options) {
  options.thresholds = {1};
  options.set.clear();
  Comparison comparison;
  comparison.base = base.name;
  comparison.other = other.name;
  const auto base_scores = scores_of(base, options);
  const auto other_scores = scores_of(other, options);
  // The columns: the differences in correct and in fast_1, the log ratio.
  std::vector<std::vector<double>> rows;
  for (const auto& [problem, theirs] : other_scores)
    if (!base_scores.contains(problem)) comparison.attempted_by_other_alone.push_back(problem);
  for (const auto& [problem, ours] : base_scores) {
    const auto found = other_scores.find(problem);
    if (found == other_scores.end()) {
      comparison.attempted_by_base_alone.push_back(problem);
      continue;
    }
    Pairing pairing;
    pairing.problem = problem;
    pairing.base = ours;
    pairing.other = found->second;
    pairing.outcome = outcome_of(pairing.base, pairing.other);
    if (pairing.base.speedup && pairing.other.speedup) {
      pairing.ratio = *pairing.other.speedup / *pairing.base.speedup;
      ++comparison.timed;
    }
    if (const auto& a = pairing.base.speedup_ci95, &b = pairing.other.speedup_ci95; a && b)
      pairing.clear = (pairing.outcome == Outcome::faster && b->low > a->high) ||
                      (pairing.outcome == Outcome::slower && b->high < a->low);
    count(comparison.correct, pairing.base.correct, pairing.other.correct);
    count(comparison.fast_1, pairing.base.fast.front(), pairing.other.fast.front());
    rows.push_back(
        {pairing.other.correct - pairing.base.correct,
         pairing.other.fast.front() - pairing.base.fast.front(),
         pairing.ratio ? std::log(*pairing.ratio) : std::numeric_limits<double>::quiet_NaN()});
    comparison.problems.push_back(std::move(pairing));
  }
  const auto estimates = bootstrap_means(rows, 3);
  comparison.correct.difference = estimates[0].value_or(Estimate{});
  comparison.fast_1.difference = estimates[1].value_or(Estimate{});
  if (estimates[2])
    comparison.ratio = {std::exp(estimates[2]->value),
                        {std::exp(estimates[2]->ci95.low), std::exp(estimates[2]->ci95.high)}};
  for (Discordance* each : {&comparison.correct, &comparison.fast_1})
    each->p_value = sign_test(each->base_better, each->other_better);
  const auto ours = conditions_of(base);
  const auto theirs = conditions_of(other);
  if (!ours.empty() && !theirs.empty() && ours != theirs)
    comparison.notes.push_back(fmt::format(
        "the runs were judged under different conditions ({} against {}): their speedups may not "
        "be comparable",
        *ours.begin(), *theirs.begin()));
  return comparison;
}

nlohmann::json to_json(const Comparison& comparison) {
  auto problems = nlohmann::json::array();
  for (const auto& pairing : comparison.problems)
    problems.push_back(
        {{"problem", pairing.problem},
         {"outcome", std::string(name_of(pairing.outcome))},
         {"clear", pairing.clear},
         {"ratio", pairing.ratio ? nlohmann::json(*pairing.ratio) : nlohmann::json(nullptr)},
         {"base", side(pairing.base)},
         {"other", side(pairing.other)}});
  auto outcomes = nlohmann::json::object();
  for (const auto outcome : {Outcome::faster, Outcome::slower, Outcome::equal, Outcome::untimed,
                             Outcome::only_base, Outcome::only_other, Outcome::neither})
    outcomes[std::string(name_of(outcome))] = occurrences(comparison, outcome);
  outcomes["clearly_faster"] = occurrences(comparison, Outcome::faster, true);
  outcomes["clearly_slower"] = occurrences(comparison, Outcome::slower, true);
  return {{"base", comparison.base},
          {"other", comparison.other},
          {"bootstrap", {{"resamples", kResamples}, {"seed", kSeed}}},
          {"problems", problems},
          {"outcomes", outcomes},
          {"attempted_by_base_alone", comparison.attempted_by_base_alone},
          {"attempted_by_other_alone", comparison.attempted_by_other_alone},
          {"correct", to_json(comparison.correct)},
          {"fast_1", to_json(comparison.fast_1)},
          {"timed", comparison.timed},
          {"ratio",
           comparison.ratio ? nlohmann::json(comparison.ratio->value) : nlohmann::json(nullptr)},
          {"ratio_ci95", comparison.ratio ? nlohmann::json{comparison.ratio->ci95.low,
                                                           comparison.ratio->ci95.high}
                                          : nlohmann::json(nullptr)},
          {"notes", comparison.notes}};
}

Report to_report(const Comparison& comparison) {
  Report report;
  report.add(fmt::format("{} (other) against {} (base), on the {} problems that both attempted",
                         clean(comparison.other), clean(comparison.base),
                         comparison.problems.size()));
  for (const auto& note : comparison.notes) report.add(clean(note, 400));
  report.add(list_of("Attempted by base alone", comparison.attempted_by_base_alone));
  report.add(list_of("Attempted by other alone", comparison.attempted_by_other_alone));
  if (comparison.problems.empty()) return report;

  Table shares({"", "base better", "other better", "both", "neither", "p", "other - base", "95%"},
               "lrrrrrrr");
  for (const auto& [name, each] :
       {std::pair{"correct", &comparison.correct}, std::pair{"fast_1", &comparison.fast_1}})
    shares.add(
        {name, std::to_string(each->base_better), std::to_string(each->other_better),
         std::to_string(each->tied_yes), std::to_string(each->tied_no),
         fmt::format("{:.3g}", each->p_value), fmt::format("{:+.3f}", each->difference.value),
         fmt::format("{:+.3f} to {:+.3f}", each->difference.ci95.low, each->difference.ci95.high)});
  report.add(std::move(shares));
  if (comparison.ratio)
    report.add(fmt::format(
        "Speedup of other / base, geometric mean over problems with both ({}): {:.3f}  [{:.3f}, "
        "{:.3f}]. "
        "Other is faster on {} ({} clearly), slower on {} ({} clearly), equal on {}.",
        comparison.timed, comparison.ratio->value, comparison.ratio->ci95.low,
        comparison.ratio->ci95.high, occurrences(comparison, Outcome::faster),
        occurrences(comparison, Outcome::faster, true), occurrences(comparison, Outcome::slower),
        occurrences(comparison, Outcome::slower, true), occurrences(comparison, Outcome::equal)));
  report.add(list_of("Solved by base alone", problems_with(comparison, Outcome::only_base)));
  report.add(list_of("Solved by other alone", problems_with(comparison, Outcome::only_other)));
  Table problems({"problem", "base", "other", "ratio", "outcome"}, "lrrrl");
  for (const auto& pairing : comparison.problems)
    problems.add({clean(pairing.problem), speedup_cell(pairing.base), speedup_cell(pairing.other),
                  pairing.ratio ? fmt::format("{:.3f}", *pairing.ratio) : "-",
                  std::string(name_of(pairing.outcome)) + (pairing.clear ? ", clearly" : "")});
  report.add(std::move(problems));
  return report;
}

Table to_table(const std::vector<Comparison>& comparisons) {
  Table table({"base", "other", "problem", "outcome", "clear", "base_correct", "other_correct",
               "base_speedup", "other_speedup", "ratio"},
              "lllllrrrrr");
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : std::string();
  };
  for (const auto& comparison : comparisons)
    for (const auto& pairing : comparison.problems)
      table.add({clean(comparison.base), clean(comparison.other), clean(pairing.problem),
                 std::string(name_of(pairing.outcome)), pairing.clear ? "true" : "false",
                 number(pairing.base.correct), number(pairing.other.correct),
                 number(pairing.base.speedup), number(pairing.other.speedup),
                 number(pairing.ratio)});
  return table;
}

}  // namespace kb::score
