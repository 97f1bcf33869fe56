// kernelbench run DIR: judges every sample of a folder, and resumes where it was stopped.
//
// Each device has one judge, a thread. Samples of one problem follow each other on one device, so
// that its reference is loaded and timed alone once. GPUs judge what has been compiled while the
// rest is still being compiled. On the CPU the device is what compiles, too: what is judged there
// is built first, and judged when no compiler runs any more beside the clock.

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/job.h"
#include "cli/progress.h"
#include "cli/run.h"
#include "cli/summary.h"
#include "judge/building.h"
#include "problem/problem.h"
#include "store/kernelbench_results.h"
#include "store/store.h"

namespace kb::cli {
namespace {

class Run {
 public:
  Run(const RunFlags& flags, store::Store& store, Workshop& workshop,
      std::vector<std::string> devices)
      : flags_(flags), store_(store), workshop_(workshop), devices_(std::move(devices)) {}

  /// Takes in what has not been judged yet. Returns how many have been.
  std::size_t add(const std::vector<problem::Sample>& samples);
  void judge_all();
  /// False: something is left to do.
  bool finished() const { return finished_; }

 private:
  // Jobs of one problem on one kind of device.
  struct Group {
    std::string kind;
    std::vector<std::size_t> jobs;
    bool taken = false;
  };

  struct Job : JudgingJob {
    std::optional<std::expected<build::Result, std::string>> build;
  };

  void leave_out(const std::string& why);
  std::size_t python_jobs(std::span<const std::size_t> jobs) const;
  void compile(const std::vector<std::size_t>& jobs, unsigned threads);
  std::vector<std::string> gpus() const;
  std::optional<Group> next_group(const std::string& kind);
  void judge_on(const std::string& device);
  judge::Result judge_one(const Job& job, judge::Evaluator& evaluator,
                          std::size_t torch_workers_to_come);
  void keep(const JudgingJob& job, const judge::Result& result, const judge::Options& options);

  const RunFlags& flags_;
  store::Store& store_;
  Workshop& workshop_;
  std::vector<std::string> devices_;
  std::string architecture_;  // of the GPUs
  std::vector<Job> jobs_;
  std::vector<Group> groups_;
  std::optional<Progress> progress_;
  std::mutex mutex_;  // of all that the judges share, and of `build` of a job
  std::condition_variable built_;
  std::string failure_;  // of the store: ends the run
  bool finished_ = true;
};

void Run::leave_out(const std::string& why) {
  fmt::print(stderr, "kernelbench: left out: {}\n", why);
  finished_ = false;
}

std::size_t Run::python_jobs(std::span<const std::size_t> jobs) const {
  return static_cast<std::size_t>(std::ranges::count_if(jobs, [&](std::size_t job) {
    return jobs_[job].candidate && jobs_[job].candidate->backend == problem::Backend::python;
  }));
}

std::size_t Run::add(const std::vector<problem::Sample>& samples) {
  const auto catalog = open_set(flags_.samples);
  std::set<problem::Id> unknown;
  std::map<std::string, std::size_t> not_here;  // why, and how many
  std::size_t known = 0;
  for (const auto& sample : samples) {
    auto problem = catalog.load(sample.id);
    if (!problem) {
      if (unknown.insert(sample.id).second) leave_out(problem.error());
      continue;
    }
    auto job =
        make_job(sample, std::move(*problem), flags_.judging, devices_, workshop_.environment());
    if (job.not_here) {
      ++not_here[*job.not_here];
      continue;
    }
    if (value_or_usage_error(store_.find(job.key))) {
      ++known;
      continue;
    }
    const auto group = std::ranges::find_if(groups_, [&](const Group& g) {
      return g.kind == job.key.device && jobs_[g.jobs.front()].problem.label == job.problem.label;
    });
    if (group == groups_.end())
      groups_.push_back({job.key.device, {jobs_.size()}, false});
    else
      group->jobs.push_back(jobs_.size());
    jobs_.push_back({std::move(job), std::nullopt});
  }
  for (const auto& [why, count] : not_here)
    leave_out(fmt::format("{} sample{}: {}", count, count == 1 ? "" : "s", why));
  return known;
}

std::vector<std::string> Run::gpus() const {
  if (devices_.empty()) return {"cuda:0"};
  std::vector<std::string> gpus;
  std::ranges::copy_if(devices_, std::back_inserter(gpus),
                       [](const std::string& device) { return device != "cpu"; });
  return gpus;
}

void Run::compile(const std::vector<std::size_t>& jobs, unsigned threads) {
  judge::BuildTarget target{workshop_.environment().python,
                            workshop_.environment().installation_root, architecture_};
  in_parallel(jobs.size(), threads, [&](std::size_t i) {
    Job& job = jobs_[jobs[i]];
    if (!job.candidate) return;
    auto built = judge::build_candidate(workshop_.environment().builder, target, job.problem,
                                        *job.candidate);
    const std::scoped_lock lock(mutex_);
    job.build = std::move(built);
    built_.notify_all();
  });
}

std::optional<Run::Group> Run::next_group(const std::string& kind) {
  const std::scoped_lock lock(mutex_);
  for (auto& group : groups_)
    if (group.kind == kind && !group.taken) {
      group.taken = true;
      return group;
    }
  return std::nullopt;
}

judge::Result Run::judge_one(const Job& job, judge::Evaluator& evaluator,
                             std::size_t torch_workers_to_come) {
  if (!job.candidate) return refused(job);
  const auto build = [&] {
    std::unique_lock lock(mutex_);
    built_.wait(lock, [&] { return job.build.has_value(); });
    return *job.build;
  };
  return judge::judge_one_of_many(
      evaluator, job.problem, *job.candidate, build, torch_workers_to_come, [&](const char* phase) {
        const std::scoped_lock lock(mutex_);
        progress_->working_on(fmt::format("{} {}", label_of(job.sample), phase));
      });
}

void Run::keep(const JudgingJob& job, const judge::Result& result, const judge::Options& options) {
  const auto row = row_of(job, judge::to_json(result, options));
  const std::scoped_lock lock(mutex_);
  if (result.verdict == judge::Verdict::infrastructure_error) finished_ = false;
  if (auto put = store_.put(row); !put) failure_ = put.error();
  progress_->done(
      fmt::format("{:<20} {:<14} {}", label_of(job.sample), result.backend, one_line(result)));
}

void Run::judge_on(const std::string& device) {
  const auto options = options_from(flags_.judging, device);
  auto opened = judge::open_device(device);
  if (!opened) {
    const std::scoped_lock lock(mutex_);
    leave_out(opened.error());
    return;
  }
  judge::Evaluator evaluator(workshop_.environment(), options, std::move(*opened));
  const std::string kind = judge::kind_of_device(device);
  while (const auto group = next_group(kind)) {
    for (std::size_t i = 0; i < group->jobs.size(); ++i) {
      std::size_t to_come = 0;
      {
        const std::scoped_lock lock(mutex_);
        if (!failure_.empty()) return;
        to_come = python_jobs(std::span(group->jobs).subspan(i + 1));
        for (const auto& other : groups_)
          if (!other.taken && other.kind == kind) to_come += 2 + python_jobs(other.jobs);
      }
      const Job& job = jobs_[group->jobs[i]];
      keep(job, judge_one(job, evaluator, to_come), options);
    }
  }
}

void Run::judge_all() {
  if (jobs_.empty()) return;
  std::vector<std::size_t> on_cpu, on_gpu;
  for (const auto& group : groups_)
    for (const std::size_t job : group.jobs) (group.kind == "cpu" ? on_cpu : on_gpu).push_back(job);
  if (!on_gpu.empty()) architecture_ = value_or_usage_error(judge::architecture_of(gpus()));
  progress_.emplace("judged", jobs_.size());
  {
    std::vector<std::jthread> judges;
    if (!on_gpu.empty())
      for (const auto& device : gpus()) judges.emplace_back([this, device] { judge_on(device); });
    compile(on_gpu, compilers_beside(judges.size(), flags_.samples.jobs));
  }
  if (!on_cpu.empty()) {
    compile(on_cpu, flags_.samples.jobs);
    judge_on("cpu");
  }
  progress_.reset();
  if (!failure_.empty()) throw UsageError(failure_);
  if (std::ranges::any_of(groups_, [](const Group& group) { return !group.taken; }))
    finished_ = false;
}

}  // namespace

int judge_folder(const RunFlags& flags) {
  const auto devices = devices_of(flags.judging);
  const auto samples = select_samples(flags.samples);
  const std::filesystem::path folder(flags.samples.folder);
  auto store = value_or_usage_error(store::Store::open(folder / "kernelbench.db"));
  Workshop workshop(flags.judging);
  Run run(flags, store, workshop, devices);
  if (const auto known = run.add(samples); known > 0)
    fmt::print("{} of {} samples have been judged already\n", known, samples.size());
  run.judge_all();
  const auto rows = value_or_usage_error(store.rows());
  value_or_usage_error(store::write_kernelbench_results(folder, rows));
  fmt::print("{} results in {}\n", rows.size(), (folder / "kernelbench.db").string());
  return run.finished() ? kOk : kFindings;
}

Command add_run(CLI::App& root) {
  auto flags = std::make_shared<RunFlags>();
  auto* app = root.add_subcommand("run", "Judge a folder of samples; run it again to resume");
  add_sample_options(*app, flags->samples);
  add_judging_options(*app, flags->judging);
  app->footer(
      "Results go to DIR/kernelbench.db, and to DIR/eval_results.json in KernelBench's format.\n"
      "Example:  kernelbench run examples/run_cpu --size small");
  return {app, [flags] {
            const int code = judge_folder(*flags);
            fmt::print("score them with: kernelbench score {}\n", flags->samples.folder);
            return code;
          }};
}

}  // namespace kb::cli
