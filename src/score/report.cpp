// A run's summaries as tables.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "score/score.h"

namespace kb::score {
namespace {

std::string factor(const std::optional<Estimate>& estimate) {
  return estimate ? factor_text(estimate->value) : "-";
}

std::string range(const Interval& interval) {
  return fmt::format("{:.3f}-{:.3f}", interval.low, interval.high);
}

std::string factor_range(const std::optional<Estimate>& estimate) {
  return estimate ? fmt::format("{:.2f}-{:.2f}", estimate->ci95.low, estimate->ci95.high) : "-";
}

// A run with one backend would repeat its first line.
std::vector<const Summary*> rows_of(const std::vector<Summary>& summaries) {
  const auto backends = std::ranges::count_if(
      summaries, [](const Summary& s) { return s.kind == Summary::Kind::backend; });
  std::vector<const Summary*> rows;
  for (const Summary& summary : summaries)
    if (summary.kind != Summary::Kind::backend || backends > 1) rows.push_back(&summary);
  return rows;
}

Table scores(const std::vector<Summary>& summaries) {
  std::vector<std::string> header{"group", "problems", "correct"};
  for (const FastP& each : summaries[0].fast_p) header.push_back(fmt::format("fast_{:g}", each.p));
  const bool has_one =
      std::ranges::any_of(summaries[0].fast_p, [](const FastP& each) { return each.p == 1; });
  if (has_one) header.insert(header.end(), {"fast_1 95%", "verified_1"});
  // The geometric means are over the correct and over the faster kernels.
  header.insert(header.end(), {"geomean", "95%", "geomean>1", "95%"});
  std::string alignment(header.size(), 'r');
  alignment[0] = 'l';
  Table table(std::move(header), std::move(alignment));
  for (const Summary* summary : rows_of(summaries)) {
    std::vector<std::string> row{clean(summary->name), std::to_string(summary->problems),
                                 std::to_string(summary->correct)};
    std::vector<std::string> of_one;
    for (const FastP& each : summary->fast_p) {
      row.push_back(fmt::format("{:.3f}", each.value));
      if (each.p == 1) of_one = {range(each.ci95), fmt::format("{:.3f}", each.verified)};
    }
    row.insert(row.end(), of_one.begin(), of_one.end());
    row.insert(row.end(), {factor(summary->geomean_correct), factor_range(summary->geomean_correct),
                           factor(summary->geomean_correct_and_faster),
                           factor_range(summary->geomean_correct_and_faster)});
    table.add(std::move(row));
  }
  return table;
}

Table curve(const Summary& all) {
  Table table({"p", "fast_p", "95% interval", "verified", "95% interval"}, "rrrrr");
  for (const FastP& each : all.fast_p)
    table.add({fmt::format("{:g}", each.p), fmt::format("{:.3f}", each.value), range(each.ci95),
               fmt::format("{:.3f}", each.verified), range(each.verified_ci95)});
  return table;
}

// Under which rules the numbers stand.
std::string terms(const Summary& all) {
  std::string text = all.over == "attempted"
                         ? fmt::format("Over the {} problems attempted", all.problems)
                         : fmt::format("Over {} problems ({}), of which {} were attempted",
                                       all.problems, all.over, all.attempted);
  if (all.samples > all.attempted)
    text += fmt::format("; {} samples, of which {} counts", all.samples,
                        all.sample_rule == SampleRule::average
                            ? "each, with an equal share of its problem,"
                        : all.sample_rule == SampleRule::first ? "a problem's first"
                                                               : "a problem's best");
  return text + fmt::format(". Intervals: 95 %, {} bootstrap resamples of the problems, seed {}.",
                            kResamples, kSeed);
}

std::string untimed(const Summary& all) {
  if (all.untimed == 0) return "";
  return fmt::format(
      "{} correct without a speedup (not timed, or no reference time: --baseline): in no fast_p",
      all.untimed == 1 ? "1 problem is" : fmt::format("{} problems are", all.untimed));
}

std::string flagged(const std::vector<Evaluation>& evaluations, const std::string& flag,
                    const char* words) {
  const auto count = std::ranges::count_if(evaluations, [&](const Evaluation& evaluation) {
    return evaluation.speedup && std::ranges::count(evaluation.flags, flag) > 0;
  });
  if (count == 0) return "";
  return fmt::format("{} {}: in fast_p and the means, never in verified",
                     count == 1 ? "1 speedup is" : fmt::format("{} speedups are", count), words);
}

std::string passes(const Summary& all) {
  std::string result;
  for (const auto& [k, pass] : all.pass_at_k) {
    if (!result.empty()) result += "  ";
    if (!pass.estimate) {
      result += fmt::format("pass@{} - (no problem has {} samples)", k, k);
      continue;
    }
    result += fmt::format("pass@{} {:.3f} [{:.3f}, {:.3f}]", k, pass.estimate->value,
                          pass.estimate->ci95.low, pass.estimate->ci95.high);
    if (pass.problems < all.problems)
      result += fmt::format(" ({} of {} problems have {} samples)", pass.problems, all.problems, k);
  }
  return result;
}

Table verdicts(const Summary& all) {
  std::vector<std::pair<std::string, int>> counts(all.verdicts.begin(), all.verdicts.end());
  std::ranges::stable_sort(counts,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table({"verdict", "samples"}, "lr");
  for (const auto& [verdict, count] : counts) table.add({clean(verdict), std::to_string(count)});
  return table;
}

std::string unjudged(const Summary& all) {
  if (all.infrastructure_errors == 0) return "";
  return fmt::format(
      "{} not judged for a fault of this machine: left out of the scores; run again to judge",
      all.infrastructure_errors == 1 ? "1 sample was"
                                     : fmt::format("{} samples were", all.infrastructure_errors));
}

Table samples(const std::vector<Evaluation>& evaluations) {
  std::vector<const Evaluation*> order;
  for (const Evaluation& evaluation : evaluations) order.push_back(&evaluation);
  std::ranges::stable_sort(order, [](const Evaluation* a, const Evaluation* b) {
    const ProblemLess less;
    if (less(a->problem, b->problem)) return true;
    return !less(b->problem, a->problem) && a->sample < b->sample;
  });
  Table table({"problem", "sample", "backend", "verdict", "speedup", "95% interval", "flags"},
              "lrllrrl");
  for (const Evaluation* e : order) {
    std::string flags;
    for (const std::string& flag : e->flags) flags += (flags.empty() ? "" : ", ") + clean(flag);
    table.add({clean(e->problem), std::to_string(e->sample), clean(e->backend), clean(e->verdict),
               e->speedup ? factor_text(*e->speedup) : "-",
               e->has_interval() ? fmt::format("{:.2f}-{:.2f}", *e->ci_low, *e->ci_high) : "-",
               flags});
  }
  return table;
}

}  // namespace

Report to_report(const std::vector<Summary>& summaries, const std::vector<Evaluation>& evaluations,
                 const std::vector<std::string>& notes) {
  Report report;
  if (summaries.empty()) return report;
  const Summary& all = summaries[0];
  report.add(scores(summaries));
  report.add(terms(all));
  report.add(untimed(all));
  report.add(flagged(evaluations, "self_reported", "self-reported (--timer)"));
  report.add(flagged(evaluations, "stored_baseline", "against a stored baseline (--baseline)"));
  for (const std::string& note : notes) report.add(note);
  if (!all.fast_p.empty()) report.add(curve(all));
  report.add(passes(all));
  report.add(verdicts(all));
  report.add(unjudged(all));
  if (!evaluations.empty()) report.add(samples(evaluations));
  return report;
}

Table to_table(const std::vector<Summary>& summaries) {
  Table table({"group", "metric", "at", "value", "low", "high", "problems"}, "lllrrrr");
  for (const Summary& summary : summaries) {
    const auto add = [&](const char* metric, const std::string& at,
                         const std::optional<Estimate>& estimate, int problems) {
      std::vector<std::string> row{clean(summary.name), metric, at, "", "", ""};
      if (estimate) {
        row[3] = fmt::format("{}", estimate->value);
        row[4] = fmt::format("{}", estimate->ci95.low);
        row[5] = fmt::format("{}", estimate->ci95.high);
      }
      row.push_back(std::to_string(problems));
      table.add(std::move(row));
    };
    add("correct", "", summary.correct_rate, summary.problems);
    for (const FastP& each : summary.fast_p)
      add("fast_p", fmt::format("{}", each.p), Estimate{each.value, each.ci95}, summary.problems);
    for (const FastP& each : summary.fast_p)
      add("verified_fast_p", fmt::format("{}", each.p), Estimate{each.verified, each.verified_ci95},
          summary.problems);
    add("geomean_correct", "", summary.geomean_correct, summary.correct - summary.untimed);
    add("geomean_correct_and_faster", "", summary.geomean_correct_and_faster, summary.faster);
    for (const auto& [k, pass] : summary.pass_at_k)
      add("pass_at_k", std::to_string(k), pass.estimate, pass.problems);
  }
  return table;
}

}  // namespace kb::score
