// kernelbench generate DIR: asks a model for kernels, and resumes where it was stopped.
//
// An answer is on the disk, raw, before anything is made of it; its code is extracted from there.
// So a run that ends at any moment loses at most the answers under way, and asks for none twice.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>

#include "cli/answers.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/generate.h"
#include "cli/problem_selection.h"
#include "cli/progress.h"
#include "cli/samples.h"
#include "llm/answers.h"
#include "llm/text.h"
#include "problem/problem.h"

namespace kb::cli {
namespace {

/// One answer that is wanted.
struct Job {
  problem::Id id;
  llm::Question question;
  std::string prompt_sha256;
};

std::vector<problem::Catalog::Entry> select_problems(const GenerateFlags& flags,
                                                     const problem::Catalog& catalog) {
  auto entries = catalog.entries();
  if (!flags.levels.empty())
    std::erase_if(entries, [&](const auto& entry) {
      return std::ranges::find(flags.levels, entry.id.level) == flags.levels.end();
    });
  if (!flags.ids.empty()) {
    const auto wanted = value_or_usage_error(problem::parse_ranges(flags.ids));
    std::erase_if(entries, [&](const auto& entry) {
      return std::ranges::find(wanted, entry.id.number) == wanted.end();
    });
  }
  if (!flags.subset.empty()) {
    const auto subset = value_or_usage_error(problem::load_subset(
        value_or_usage_error(problem::find_set(flags.problems)), flags.subset));
    std::erase_if(entries, [&](const auto& entry) {
      return std::ranges::find(subset, entry.id, &problem::SubsetEntry::id) == subset.end();
    });
  }
  if (flags.draw > 0) {
    std::mt19937_64 random(flags.draw_seed);
    std::ranges::shuffle(entries, random);
    entries.resize(std::min(entries.size(), static_cast<std::size_t>(flags.draw)));
    std::ranges::sort(entries, {}, &problem::Catalog::Entry::id);
  }
  if (entries.empty())
    throw UsageError("no problem is selected by --level, --ids, --subset or --draw");
  return entries;
}

class Generate {
 public:
  Generate(const GenerateFlags& flags, Asking& asking)
      : flags_(flags),
        asking_(asking),
        library_(load_library(flags.prompting)),
        request_(request_from(flags.prompting)),
        backend_(backend_named(library_, request_.backend)) {}

  /// Renders the prompts of all that is selected.
  void plan();
  /// Takes away what has been answered already.
  void resume();
  void ask_all();
  void summarize() const;

  std::size_t jobs() const { return jobs_.size(); }
  std::size_t prompt_tokens() const { return prompt_tokens_; }
  /// False: something is left to do.
  bool finished() const { return all_written_ && tally_.finished() && failure_.empty(); }
  bool stopped() const { return stop_.stop_requested(); }
  const std::string& failure() const { return failure_; }

 private:
  std::string kernel_name(const Job& job) const {
    return job.question.name + "_kernel" + backend_.suffix;
  }
  void ask(const Job& job);

  const GenerateFlags& flags_;
  Asking& asking_;
  prompt::Library library_;
  prompt::Request request_;
  const prompt::Backend& backend_;
  std::optional<llm::AnswerFolder> folder_;
  std::vector<Job> jobs_;
  std::map<problem::Id, std::size_t> tokens_of_;  // of one prompt
  std::size_t prompt_tokens_ = 0;
  bool all_written_ = true;  // the prompts
  std::stop_source stop_;
  std::optional<Progress> progress_;

  std::mutex mutex_;  // of all below
  AnswerTally tally_;
  std::string failure_;
};

void Generate::plan() {
  const auto catalog = value_or_usage_error(
      problem::Catalog::open(value_or_usage_error(problem::find_set(flags_.problems))));
  for (const auto& entry : select_problems(flags_, catalog)) {
    const auto problem = value_or_usage_error(catalog.load(entry.id));
    const auto prompt = library_.render(problem, request_);
    if (!prompt) {
      fmt::print(stderr, "kernelbench: left out: {}: {}\n", entry.id.text(), prompt.error());
      all_written_ = false;
      continue;
    }
    tokens_of_[entry.id] = prompt->estimated_tokens;
    const llm::Prompt asked{prompt->system, {{llm::Message::From::user, prompt->user}}};
    const std::string hash = llm::hash_of(asked);
    for (int sample = 0; sample < flags_.samples; ++sample)
      jobs_.push_back(
          {entry.id,
           {fmt::format("level_{}_problem_{}_sample_{}", entry.id.level, entry.id.number, sample),
            sample, asked},
           hash});
  }
  if (jobs_.empty()) throw UsageError("no prompt could be written: see above");
}

void Generate::resume() {
  auto configuration = asking_.configuration();
  configuration["prompt"] = configuration_of(request_);
  // The ids of two sets are not to meet in one folder.
  if (value_or_usage_error(problem::find_set(flags_.problems)) != problem::bundled_root())
    configuration["problems"] = flags_.problems;
  folder_ = value_or_usage_error(llm::AnswerFolder::open(flags_.folder, configuration));
  std::vector<Job> left;
  std::vector<std::pair<Job, llm::Record>> known;
  std::set<problem::Id> changed;
  for (auto& job : jobs_) {
    auto record = value_or_usage_error(folder_->find(job.question.name));
    if (!record || !llm::is_final(record->answer.status)) {
      left.push_back(std::move(job));
    } else {
      if (record->prompt_sha256 != job.prompt_sha256) changed.insert(job.id);
      known.emplace_back(std::move(job), std::move(*record));
    }
  }
  if (!changed.empty())
    throw UsageError(
        fmt::format("{} holds answers to other prompts than these ({}{}): a problem or a text has "
                    "changed since; use another folder",
                    llm::one_line(flags_.folder), changed.begin()->text(),
                    changed.size() > 1 ? fmt::format(" and {} more", changed.size() - 1) : ""));
  for (auto& [job, record] : known) {
    // Killed between an answer and its kernel, or the kernel was deleted to have it made again.
    if (folder_->has_file(kernel_name(job))) continue;
    keep_code(*folder_, job.question.name, record, backend_.language, kernel_name(job));
  }
  if (!known.empty())
    fmt::print("{} of {} questions have been answered already\n", known.size(),
               known.size() + left.size());
  jobs_ = std::move(left);
  for (const auto& job : jobs_) prompt_tokens_ += tokens_of_[job.id];
}

void Generate::ask(const Job& job) {
  const auto reply = ask_and_keep(
      asking_, *folder_,
      {job.question,
       job.prompt_sha256,
       {{"problem", job.id.text()}, {"sample", job.question.sample}, {"backend", backend_.name}},
       backend_.language,
       kernel_name(job)},
      stop_.get_token());
  const std::scoped_lock lock(mutex_);
  if (tally_.add(reply)) stop_.request_stop();
  if (reply.record.answer.status == llm::Status::not_asked) return;
  progress_->done(
      fmt::format("{:<20} {}", label_of({job.id, job.question.sample, {}}), line_of(reply.record)));
}

void Generate::ask_all() {
  if (jobs_.empty()) return;
  std::set<problem::Id> written;
  for (const auto& job : jobs_)
    if (written.insert(job.id).second) {
      auto prompt = llm::to_json(job.question.prompt);
      prompt["sha256"] = job.prompt_sha256;
      if (auto put = folder_->put_prompt(
              fmt::format("level_{}_problem_{}", job.id.level, job.id.number), prompt);
          !put)
        throw UsageError(put.error());
    }
  const PatientStop patient(stop_);
  progress_.emplace("answered", jobs_.size());
  in_parallel(jobs_.size(), flags_.asking.workers, [this](std::size_t i) {
    // Not to be the end of the answers that other workers wait for.
    const auto failure = failure_of([&] { ask(jobs_[i]); });
    if (failure.empty()) return;
    const std::scoped_lock lock(mutex_);
    if (failure_.empty()) failure_ = failure;
    stop_.request_stop();
  });
  progress_.reset();
}

void Generate::summarize() const {
  fmt::print("{}", tally_.summary(flags_.asking, asking_.replays()));
  if (!finished())
    fmt::print("run the same command again for what is missing in {}\n", flags_.folder);
}

}  // namespace

Asked generate(const GenerateFlags& flags) {
  Asking asking(flags.asking);
  Generate run(flags, asking);
  run.plan();
  if (flags.dry_run) {
    fmt::print("{} questions to {}\n", run.jobs(), asking.described());
    return {};
  }
  run.resume();
  if (run.jobs() > 0)
    fmt::print("{} questions to {}, about {} tokens of prompt\n", run.jobs(), asking.described(),
               run.prompt_tokens());
  std::fflush(stdout);
  run.ask_all();
  run.summarize();
  if (!run.failure().empty()) throw UsageError(run.failure());
  return {run.finished(), run.stopped()};
}

void add_question_options(CLI::App& app, GenerateFlags& flags) {
  app.add_option("folder", flags.folder, "where prompts, answers and kernels go")->required();
  app.add_option("--level", flags.levels, "only these levels (repeatable)")
      ->check(CLI::Range(1, 999));
  app.add_option("--ids", flags.ids, "only these problem numbers, e.g. 1-10,19");
  add_set_option(app, flags.problems);
  app.add_option("--subset", flags.subset,
                 "only this subset of the problems, such as representative");
  app.add_option("--draw", flags.draw, "only this many problems, drawn at random")
      ->check(CLI::PositiveNumber);
  app.add_option("--draw-seed", flags.draw_seed, "of --draw")->capture_default_str();
  app.add_option("--samples", flags.samples, "answers to each problem")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
}

Command add_generate(CLI::App& root) {
  auto flags = std::make_shared<GenerateFlags>();
  auto* app = root.add_subcommand("generate", "Ask a language model for kernels; again to resume");
  add_question_options(*app, *flags);
  app->add_flag("--dry-run", flags->dry_run, "only say what would be asked");
  add_prompting_options(*app, flags->prompting);
  add_asking_options(*app, flags->asking);
  app->footer(
      "The key comes from the environment (OPENAI_API_KEY and the like) or from a file .env, and "
      "is\n"
      "kept nowhere. DIR/answers/ has every answer as it came; delete one to ask again.\n"
      "Example:  kernelbench generate runs/a --provider anthropic --model claude-opus-5-5 \\\n"
      "            --backend cuda --gpu h200 --level 1 --samples 4\n"
      "          kernelbench generate runs/b --base-url http://localhost:8000/v1 --model mine");
  return {app, [flags] {
            const bool finished = generate(*flags).finished;
            if (finished && !flags->dry_run)
              fmt::print("judge them with: kernelbench run {}{}\n", flags->folder,
                         flags->problems.empty() ? "" : " --problems " + flags->problems);
            return finished ? kOk : kFindings;
          }};
}

}  // namespace kb::cli
