// kernelbench run DIR: judges every sample of a folder, and resumes where it was stopped.
//
// On the CPU the device is what compiles, too: all samples are built first, in parallel, and then
// judged one after another, so that no compiler runs beside a clock. Samples of one problem
// follow each other, so that its reference is loaded and timed alone once.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/judging.h"
#include "cli/progress.h"
#include "cli/summary.h"
#include "problem/problem.h"
#include "store/kernelbench_results.h"
#include "store/store.h"

namespace kb::cli {
namespace {

struct RunFlags {
  JudgingFlags judging;
  std::string folder;
  std::vector<int> levels;
  std::string ids;
  int draw = 0;
  std::uint64_t seed = 0;
  unsigned jobs = 0;
  bool json = false;
};

/// One sample on its way to a result.
struct Job {
  problem::Sample sample;
  problem::Problem problem;
  std::optional<problem::Candidate>
      candidate;  ///< none: the file cannot be a candidate, `refusal` says why
  std::string refusal;
  store::Key key;
  std::optional<std::expected<build::Result, judge::Refusal>> build;
};

std::vector<problem::Sample> select(const RunFlags& flags) {
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
    throw UsageError(
        fmt::format("no sample in {} is selected by --level, --ids or --sample", flags.folder));
  return samples;
}

std::string label_of(const Job& job) {
  return fmt::format("{} sample {}", job.sample.id.text(), job.sample.sample);
}

void compile_all(std::vector<Job>& jobs, const judge::Evaluator& evaluator, unsigned threads) {
  std::vector<Job*> to_build;
  for (auto& job : jobs)
    if (job.candidate) to_build.push_back(&job);
  Progress progress("compiled", to_build.size());
  std::mutex mutex;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; (i = next.fetch_add(1)) < to_build.size();) {
      auto built = evaluator.build(to_build[i]->problem, *to_build[i]->candidate);
      const std::scoped_lock lock(mutex);
      to_build[i]->build = std::move(built);
      progress.done("");
    }
  };
  std::vector<std::jthread> pool;
  for (unsigned t = 0; t < std::max(threads, 1u); ++t) pool.emplace_back(work);
}

int run(const RunFlags& flags) {
  const auto options = options_from(flags.judging);
  const auto samples = select(flags);
  const auto catalog = value_or_usage_error(problem::Catalog::open(problem::bundled_root()));
  const std::filesystem::path folder(flags.folder);
  auto store = value_or_usage_error(store::Store::open(folder / "kernelbench.db"));

  Workshop workshop(flags.judging);
  auto settings = judge::settings_json(options);
  settings["torch"] = workshop.environment().python.torch_version;

  std::vector<Job> jobs;
  std::map<problem::Id, std::string> unknown;
  std::size_t known = 0;
  for (const auto& sample : samples) {
    auto problem = catalog.load(sample.id);
    if (!problem) {
      unknown.emplace(sample.id, problem.error());
      continue;
    }
    Job job{sample, std::move(*problem), std::nullopt, "", {}, std::nullopt};
    auto candidate = problem::load_candidate(sample.path);
    if (candidate)
      job.candidate = std::move(*candidate);
    else
      job.refusal = candidate.error();
    job.key = {job.problem.label, sample.sample,
               job.problem.hash,  job.candidate ? job.candidate->hash : job.refusal,
               options.device,    settings.dump()};
    if (value_or_usage_error(store.find(job.key)))
      ++known;
    else
      jobs.push_back(std::move(job));
  }
  for (const auto& [id, why] : unknown) fmt::print(stderr, "kernelbench: left out: {}\n", why);
  if (known > 0) fmt::print("{} of {} samples have been judged already\n", known, samples.size());

  bool unfinished = !unknown.empty();
  if (!jobs.empty()) {
    judge::Evaluator evaluator(workshop.environment(), options);
    compile_all(jobs, evaluator, flags.jobs > 0 ? flags.jobs : std::thread::hardware_concurrency());
    auto python_left = static_cast<std::size_t>(std::ranges::count_if(jobs, [](const Job& job) {
      return job.candidate && job.candidate->backend == problem::Backend::python;
    }));
    Progress progress("judged", jobs.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      auto& job = jobs[i];
      std::optional<judge::Result> result;
      if (!job.candidate) {
        problem::Candidate unreadable{job.sample.path, "", "", problem::Backend::python};
        result =
            judge::unjudged(job.problem, unreadable, judge::Verdict::static_reject, job.refusal);
      } else if (!*job.build) {
        result = judge::unjudged(job.problem, *job.candidate, judge::Verdict::infrastructure_error,
                                 job.build->error().message);
      } else {
        const bool python = job.candidate->backend == problem::Backend::python;
        evaluator.warm_up(job.candidate->backend, python_left);
        if (python) --python_left;
        auto judged =
            evaluator.evaluate(job.problem, *job.candidate, **job.build, [&](const char* phase) {
              progress.working_on(fmt::format("{} {}", label_of(job), phase));
            });
        result =
            judged ? std::move(*judged)
                   : judge::unjudged(job.problem, *job.candidate,
                                     judge::Verdict::infrastructure_error, judged.error().message);
      }
      if (result->verdict == judge::Verdict::infrastructure_error) unfinished = true;
      auto json = judge::to_json(*result, options);
      json["sample"] = job.sample.sample;
      store::Row row{job.key, std::string(name_of(result->verdict)),
                     json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), ""};
      if (auto put = store.put(row); !put) throw UsageError(put.error());
      progress.done(
          fmt::format("{:<20} {:<7} {}", label_of(job), result->backend, one_line(*result)));
    }
  }
  const auto rows = value_or_usage_error(store.rows());
  const auto written = value_or_usage_error(store::write_kernelbench_results(folder, rows));
  fmt::print("{} results in {}; score them with: kernelbench score {}\n", rows.size(),
             (folder / "kernelbench.db").string(), flags.folder);
  (void)written;
  return unfinished ? kFindings : kOk;
}

}  // namespace

Command add_run(CLI::App& root) {
  auto flags = std::make_shared<RunFlags>();
  auto* app = root.add_subcommand("run", "Judge a folder of samples; run it again to resume");
  app->add_option("folder", flags->folder,
                  "holds level_1_problem_19_sample_0_kernel.py (.cpp) and the like")
      ->required();
  app->add_option("--level", flags->levels, "only these levels (repeatable)");
  app->add_option("--ids", flags->ids, "only these problem numbers, e.g. 1-10,19");
  app->add_option("--sample", flags->draw, "only this many problems, drawn at random")
      ->check(CLI::PositiveNumber);
  app->add_option("--seed", flags->seed, "of --sample")->capture_default_str();
  app->add_option("--jobs", flags->jobs, "compilations at a time; default one per CPU")
      ->check(CLI::Range(1, 1024));
  add_judging_options(*app, flags->judging);
  app->footer(
      "Results go to DIR/kernelbench.db, and to DIR/eval_results.json in KernelBench's format.\n"
      "Example:  kernelbench run examples/run_cpu --size small");
  return {app, [flags] { return run(*flags); }};
}

}  // namespace kb::cli
