#include "cli/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "cli/failure.h"
#include "cli/problem_selection.h"

namespace kb::cli {

void add_sample_options(CLI::App& app, SampleFlags& flags) {
  app.add_option("folder", flags.folder,
                 "holds level_1_problem_19_sample_0_kernel.py (.cpp, .cu, .hip) and the like")
      ->required();
  app.add_option("--level", flags.levels, "only these levels (repeatable)");
  app.add_option("--ids", flags.ids, "only these problem numbers, e.g. 1-10,19");
  add_set_option(app, flags.problems);
  app.add_option("--subset", flags.subset,
                 "only this subset of the problems, such as representative");
  app.add_option("--sample", flags.draw, "only this many problems, drawn at random")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", flags.seed, "of --sample")->capture_default_str();
  add_jobs_option(app, flags);
}

void add_jobs_option(CLI::App& app, SampleFlags& flags) {
  app.add_option("--jobs", flags.jobs, "compilations at a time; default one per CPU")
      ->check(CLI::Range(1, 1024));
}

namespace {

// The set that `generate` asked about, where the folder is one of its: its kernels are for no
// other.
std::string set_of(const SampleFlags& flags) {
  if (!flags.problems.empty()) return flags.problems;
  std::ifstream file(std::filesystem::path(flags.folder) / "generate.json");
  const auto configuration = nlohmann::json::parse(file, nullptr, false);
  if (!configuration.is_object()) return "";
  const auto set = configuration.find("problems");
  return set != configuration.end() && set->is_string() ? set->get<std::string>() : "";
}

}  // namespace

std::vector<problem::Sample> select_samples(const SampleFlags& flags) {
  auto samples = value_or_usage_error(problem::find_samples(flags.folder));
  if (!flags.levels.empty())
    std::erase_if(samples, [&](const auto& s) {
      return std::ranges::find(flags.levels, s.id.level) == flags.levels.end();
    });
  if (!flags.ids.empty()) {
    const auto wanted = value_or_usage_error(problem::parse_ranges(flags.ids));
    std::erase_if(samples, [&](const auto& s) {
      return std::ranges::find(wanted, s.id.number) == wanted.end();
    });
  }
  if (!flags.subset.empty()) {
    const auto subset = value_or_usage_error(
        problem::load_subset(value_or_usage_error(problem::find_set(set_of(flags))), flags.subset));
    std::erase_if(samples, [&](const auto& s) {
      return std::ranges::find(subset, s.id, &problem::SubsetEntry::id) == subset.end();
    });
  }
  if (flags.draw > 0) {
    std::set<problem::Id> ids;
    for (const auto& sample : samples) ids.insert(sample.id);
    std::vector<problem::Id> chosen(ids.begin(), ids.end());
    std::mt19937_64 random(flags.seed);
    std::ranges::shuffle(chosen, random);
    chosen.resize(std::min<std::size_t>(chosen.size(), static_cast<std::size_t>(flags.draw)));
    std::erase_if(samples,
                  [&](const auto& s) { return std::ranges::find(chosen, s.id) == chosen.end(); });
  }
  if (samples.empty())
    throw UsageError(fmt::format(
        "no sample in {} is selected by --level, --ids, --subset or --sample", flags.folder));
  return samples;
}

problem::Catalog open_set(const SampleFlags& flags) {
  return value_or_usage_error(
      problem::Catalog::open(value_or_usage_error(problem::find_set(set_of(flags)))));
}

std::string label_of(const problem::Sample& sample) {
  return fmt::format("{} sample {}", sample.id.text(), sample.sample);
}

unsigned compilers_beside(std::size_t judges, unsigned jobs) {
  constexpr unsigned kCpusOfAJudge = 4;
  if (jobs > 0) return jobs;
  const unsigned cpus = std::max(std::thread::hardware_concurrency(), 1u);
  const unsigned taken = kCpusOfAJudge * static_cast<unsigned>(judges);
  return std::max(cpus / 2, taken < cpus ? cpus - taken : 1);
}

void in_parallel(std::size_t count, unsigned threads,
                 const std::function<void(std::size_t)>& work) {
  std::size_t wanted = threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
  wanted = std::min(wanted, count);
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> pool;
  for (std::size_t t = 0; t < wanted; ++t)
    pool.emplace_back([&] {
      for (std::size_t i; (i = next.fetch_add(1)) < count;) work(i);
    });
}

}  // namespace kb::cli
