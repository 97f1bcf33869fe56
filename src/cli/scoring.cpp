#include "cli/scoring.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include "cli/baseline.h"
#include "cli/failure.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "problem/problem.h"
#include "score/baseline.h"
#include "score/kernelbench_files.h"

namespace kb::cli {
namespace {

namespace fs = std::filesystem;

// How many problems KernelBench has in its levels.
const std::map<int, int> kPublicLevels = {{1, 100}, {2, 100}, {3, 50}, {4, 20}};
// More would be a typing error, and slow.
constexpr std::size_t kMostNumbers = 100;

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

template <class Number>
std::vector<Number> parse_numbers(const std::string& text, const char* option, Number least,
                                  Number most) {
  std::set<Number> numbers;
  for (const std::string_view part : split(text)) {
    Number number{};
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    // The negation also refuses NaN.
    if (error != std::errc() || end != part.data() + part.size() ||
        !(number >= least && number <= most))
      throw UsageError(fmt::format("{} takes numbers from {} to {} with commas between, not '{}'",
                                   option, least, most, printable(text, false)));
    numbers.insert(number);
  }
  if (numbers.size() > kMostNumbers)
    throw UsageError(fmt::format("{} takes at most {} numbers", option, kMostNumbers));
  return {numbers.begin(), numbers.end()};
}

// A file, or NAME or NAME/MODE of what `kernelbench baseline` has stored.
score::Baseline load_baseline(const std::string& argument) {
  std::error_code error;
  fs::path path(argument);
  if (!fs::is_regular_file(path, error)) {
    path = baseline_file(argument);
    if (path.empty() || !fs::exists(path, error)) {
      std::set<std::string> names;
      for (fs::directory_iterator it(baselines_root(), error), end; !error && it != end;
           it.increment(error))
        names.insert(it->path().filename().string());
      std::string list;
      for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
      throw UsageError(printable(
          fmt::format("there is no baseline {}: give a file in KernelBench's format, or a name "
                      "that `kernelbench baseline` has stored ({}), /default and the like behind "
                      "it for torch.compile's",
                      argument, list.empty() ? "none is" : list),
          false));
    }
  }
  auto baseline = score::Baseline::parse(value_or_usage_error(score::read_results_file(path)));
  if (!baseline)
    throw UsageError(fmt::format("{}: {}", printable(path.string(), false), baseline.error()));
  return *baseline;
}

std::string label(int level, int number) {
  return problem::Id{level, number}.text();
}

// Every problem that --over counts, of any level.
std::vector<problem::Id> ids_of_set(const std::string& over) {
  std::vector<problem::Id> ids;
  if (over == "bundled") {
    const auto catalog = value_or_usage_error(problem::Catalog::open(problem::bundled_root()));
    for (const auto& entry : catalog.entries()) ids.push_back(entry.id);
  } else if (over == "public") {
    for (const auto& [level, count] : kPublicLevels)
      for (int number = 1; number <= count; ++number) ids.push_back({level, number});
  }
  return ids;
}

std::optional<std::vector<int>> numbers_of(const ScoringFlags& flags) {
  if (flags.ids.empty()) return std::nullopt;
  return value_or_usage_error(problem::parse_ranges(flags.ids));
}

template <class Numbers>
bool holds(const Numbers& numbers, int number) {
  return std::ranges::find(numbers, number) != numbers.end();
}

}  // namespace

void add_run_options(CLI::App& app, ScoringFlags& flags) {
  app.add_option(
         "--level", flags.levels,
         "only these levels (repeatable); also the level of an eval_results.json that does not "
         "say it")
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 999));
  app.add_option("--ids", flags.ids, "only these problem numbers, e.g. 1-10,19");
  app.add_option("--samples", flags.samples,
                 "how several samples of a problem count: average (each, equally), first "
                 "(KernelBench's rule), best (as if chosen by one who knows the verdicts)")
      ->capture_default_str()
      ->check(CLI::IsMember({"average", "first", "best"}));
  app.add_option("--rules", flags.rules, "whose verdict counts: own, kernelbench")
      ->capture_default_str()
      ->check(CLI::IsMember({"own", "kernelbench"}));
  app.add_option(
      "--baseline", flags.baseline,
      "take speedups against these stored times: a file in KernelBench's format, or what "
      "`kernelbench baseline` has stored, as NAME or NAME/MODE");
}

void add_summary_options(CLI::App& app, ScoringFlags& flags) {
  app.add_option("--over", flags.over,
                 "the denominator: attempted (problems with a sample that was judged), bundled, "
                 "public (KernelBench's 100, 100, 50, 20), both of the levels at hand")
      ->capture_default_str();
  app.add_option("--p", flags.thresholds, "of fast_p, e.g. 0.5,1,2");
  app.add_option("--k", flags.ks,
                 "of pass@k, e.g. 1,5,10; default: up to the smallest number of samples");
}

score::Run load_run(const std::string& path, const ScoringFlags& flags) {
  auto run = score::load_run(path, flags.levels.size() == 1 ? flags.levels.front() : 0);
  if (!run) throw UsageError(printable(run.error(), false));
  const auto numbers = numbers_of(flags);
  std::erase_if(run->evaluations, [&](const score::Evaluation& evaluation) {
    if (!flags.levels.empty() && !holds(flags.levels, evaluation.level)) return true;
    const auto id = problem::parse_id(evaluation.problem);
    return numbers && !(id && holds(*numbers, id->number));
  });
  if (run->evaluations.empty())
    throw UsageError(
        fmt::format("no result in {} is selected by --level or --ids", printable(path, false)));
  if (flags.rules == "kernelbench")
    for (auto& evaluation : run->evaluations)
      evaluation = score::by_public_rule(std::move(evaluation));
  if (!flags.baseline.empty()) {
    const auto without = score::use_baseline(load_baseline(flags.baseline), run->evaluations);
    if (!without.empty())
      run->notes.push_back(fmt::format(
          "{}: the baseline has no time of {}{}: never fast", run->name, without.front(),
          without.size() == 1 ? "" : fmt::format(" and {} more", without.size() - 1)));
  }
  for (const auto& note : run->notes)
    fmt::print(stderr, "kernelbench: {}\n", printable(note, false));
  return std::move(*run);
}

std::vector<score::Run> load_runs(const std::vector<std::string>& paths,
                                  const ScoringFlags& flags) {
  std::vector<score::Run> runs;
  for (const auto& path : paths) runs.push_back(load_run(path, flags));
  std::map<std::string, int> names;
  for (const auto& run : runs) ++names[run.name];
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (names[runs[i].name] > 1) runs[i].name = paths[i];
  return runs;
}

score::Options score_options(const ScoringFlags& flags, const std::vector<score::Run>& runs) {
  constexpr double kLargestP = 1e6;
  constexpr int kLargestK = 100'000;
  score::Options options;
  options.samples = score::parse_sample_rule(flags.samples).value();
  if (flags.thresholds)
    options.thresholds = parse_numbers<double>(*flags.thresholds, "--p", 0, kLargestP);
  if (flags.ks) options.ks = parse_numbers<int>(*flags.ks, "--k", 1, kLargestK);
  std::set<int> levels(flags.levels.begin(), flags.levels.end());
  if (levels.empty())
    for (const auto& run : runs)
      for (const auto& evaluation : run.evaluations) levels.insert(evaluation.level);
  const auto numbers = numbers_of(flags);
  for (const auto& id : ids_of_set(flags.over))
    if (levels.contains(id.level) && (!numbers || holds(*numbers, id.number)))
      options.set.insert(label(id.level, id.number));
  if (flags.over == "union")
    for (const auto& run : runs)
      for (const auto& evaluation : run.evaluations)
        if (evaluation.counts) options.set.insert(evaluation.problem);
  options.over = flags.over;
  return options;
}

void add_output_options(CLI::App& app, OutputFlags& flags) {
  auto* json = app.add_flag("--json", flags.json, "print JSON");
  app.add_flag("--markdown", flags.markdown, "print Markdown")->excludes(json);
  app.add_option("--csv", flags.csv,
                 "write the numbers to this file as CSV too; - prints it alone");
}

void print_output(const OutputFlags& flags, const score::Report& report, const nlohmann::json& json,
                  const score::Table& table) {
  if (flags.csv == "-") {
    if (flags.json || flags.markdown)
      throw UsageError("--csv - takes stdout alone; give it a file, or leave out the other");
    fmt::print("{}", table.csv());
    return;
  }
  if (!flags.csv.empty()) write_output_file(flags.csv, table.csv());
  if (flags.json)
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    fmt::print("{}", flags.markdown ? report.markdown() : report.text());
}

}  // namespace kb::cli
