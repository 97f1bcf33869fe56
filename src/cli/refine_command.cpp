// kernelbench refine: a model sees what became of its kernel and tries again.
//
// A conversation is one sample. Turn 1 is the sample as it is, or the answer to the first prompt;
// each later turn is the answer to all that was said before: the prompt, and by turns the kernel
// and its judgement. What a turn needs is on the disk before the next one begins, and a
// conversation is read back from there: the answer as it came, the kernel in it, and its result,
// which the store knows by the kernel's digest. The best kernel so far stands under the sample's
// own name.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "cli/answers.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/job.h"
#include "cli/loop.h"
#include "cli/problem_selection.h"
#include "cli/progress.h"
#include "cli/samples.h"
#include "judge/panel.h"
#include "llm/text.h"
#include "problem/text_file.h"
#include "refine/conversation.h"
#include "store/kernelbench_results.h"
#include "store/store.h"

namespace kb::cli {
namespace {

struct RefineFlags {
  std::vector<std::string> what;  ///< a folder, or, with `out`, problems
  std::string out;
  std::vector<int> levels;
  std::string ids, problems;
  int samples = 1;
  int turns = 5;
  double target = 1;
  PromptingFlags prompting;
  AskingFlags asking;
  JudgingFlags judging;
};

/// One sample, and its files.
struct Talk {
  problem::Id id;
  int sample = 0;
  std::string suffix;  ///< of its kernel's file
  problem::Problem problem;
  prompt::Prompt first;

  std::string name() const {
    return fmt::format("level_{}_problem_{}_sample_{}", id.level, id.number, sample);
  }
  std::string label() const { return label_of({id, sample, {}}); }
  std::string kernel() const { return name() + "_kernel" + suffix; }
  /// Of the answer; the first turn's is the sample's.
  std::string turn(std::size_t number) const {
    return number == 1 ? name() : fmt::format("{}_turn_{}", name(), number);
  }
  std::string turn_file(std::size_t number) const {
    return fmt::format("{}_turn_{}{}", name(), number, suffix);
  }
};

class Refine {
 public:
  /// `devices`, of one kind, are those that judge.
  Refine(const RefineFlags& flags, std::vector<std::string> devices, Asking& asking,
         std::stop_source stop)
      : flags_(flags),
        devices_(std::move(devices)),
        asking_(asking),
        stop_(std::move(stop)),
        folder_path_(flags.out.empty() ? flags.what.front() : flags.out),
        library_(load_library(flags.prompting)),
        request_(request_from(flags.prompting)),
        backend_(backend_named(library_, request_.backend)) {}

  /// Which conversations there are.
  void plan();
  /// Opens the folder and the devices.
  void open(const judge::Environment& environment);
  void converse_all();
  void summarize();
  bool finished() const { return finished_; }
  const std::string& failure() const { return failure_; }

 private:
  void add(const problem::Catalog& catalog, problem::Id id, int sample, const std::string& suffix);
  void converse(const Talk& talk);
  std::optional<std::string> kept_source(const Talk& talk, std::size_t number,
                                         const std::string& prompt_hash) const;
  void put_prompt(const std::string& name, const llm::Prompt& prompt, const std::string& hash);
  std::optional<std::string> ask(const Talk& talk, std::size_t number, const llm::Prompt& prompt,
                                 const std::string& prompt_hash, std::string& told);
  std::optional<store::Row> result_of(const Talk& talk, std::size_t number);
  void put_row(const store::Row& row);
  void publish(const Talk& talk, const std::string& code, const store::Row& row);
  void tell(const Talk& talk, std::size_t number, const std::string& line);  // with the lock

  const RefineFlags& flags_;
  std::vector<std::string> devices_;
  Asking& asking_;
  std::stop_source stop_;
  std::filesystem::path folder_path_;
  prompt::Library library_;
  prompt::Request request_;
  const prompt::Backend& backend_;
  std::vector<Talk> talks_;
  const judge::Environment* environment_ = nullptr;
  std::optional<llm::AnswerFolder> folder_;
  std::optional<store::Store> store_;
  std::unique_ptr<judge::Panel> panel_;
  std::optional<Progress> progress_;

  std::mutex mutex_;  // of all below
  AnswerTally tally_;
  std::map<std::pair<std::string, int>, std::string> standing_;  // digest of the newest row
  std::vector<std::string> outcomes_;
  std::string failure_;
  bool finished_ = true;
};

void Refine::add(const problem::Catalog& catalog, problem::Id id, int sample,
                 const std::string& suffix) {
  auto problem = catalog.load(id);
  auto prompt = problem
                    ? library_.render(*problem, request_)
                    : std::expected<prompt::Prompt, std::string>(std::unexpected(problem.error()));
  if (!prompt) {
    fmt::print(stderr, "kernelbench: left out: {}: {}\n", id.text(), prompt.error());
    finished_ = false;
    return;
  }
  talks_.push_back({id, sample, suffix, std::move(*problem), std::move(*prompt)});
}

void Refine::plan() {
  SampleFlags chosen;
  chosen.folder = folder_path_.string();
  chosen.levels = flags_.levels;
  chosen.ids = flags_.ids;
  chosen.problems = flags_.problems;
  const auto catalog = open_set(chosen);
  if (!flags_.out.empty()) {
    std::set<problem::Id> ids;
    for (const auto& text : flags_.what) {
      const auto id = problem::parse_id(text);
      if (!id)
        throw UsageError(
            fmt::format("'{}' is no problem's id such as level1/19", problem::printable(text)));
      value_or_usage_error(catalog.load(*id));
      if (!ids.insert(*id).second) continue;
      for (int sample = 0; sample < flags_.samples; ++sample)
        add(catalog, *id, sample, backend_.suffix);
    }
  } else {
    if (flags_.what.size() != 1 ||
        (problem::parse_id(flags_.what.front()) && !std::filesystem::exists(folder_path_)))
      throw UsageError("give one folder of samples; or problems, and a new folder as --out DIR");
    for (const auto& sample : select_samples(chosen)) {
      const std::string suffix = sample.path.extension().string();
      if (suffix != backend_.suffix && !(suffix == ".cc" && backend_.suffix == ".cpp"))
        throw UsageError(
            fmt::format("{} is no {} kernel: give the backend of the samples, --backend",
                        problem::printable(sample.path.filename().string()), backend_.name));
      add(catalog, sample.id, sample.sample, suffix);
    }
  }
  if (talks_.empty()) throw UsageError("nothing is left to refine: see above");
}

void Refine::open(const judge::Environment& environment) {
  environment_ = &environment;
  auto configuration = asking_.configuration();
  configuration["prompt"] = configuration_of(request_);
  configuration["judging"] = settings_of(flags_.judging, devices_.front(), environment);
  configuration["judging"]["device"] = judge::kind_of_device(devices_.front());
  folder_ =
      value_or_usage_error(llm::AnswerFolder::open(folder_path_, configuration, "refine.json"));
  store_ = value_or_usage_error(store::Store::open(folder_path_ / "kernelbench.db"));
  for (const auto& row : value_or_usage_error(store_->rows()))
    standing_[{row.key.problem, row.key.sample}] = row.key.candidate_hash;
  panel_ = value_or_usage_error(judge::Panel::open(environment,
                                                   options_from(flags_.judging, devices_.front()),
                                                   devices_, compilers_beside(devices_.size(), 0)));
}

void Refine::tell(const Talk& talk, std::size_t number, const std::string& line) {
  progress_->done(fmt::format("{:<20} turn {}  {}", talk.label(), number, line));
}

// The kernel of a turn where the disk has it or its answer; empty when the answer has none.
std::optional<std::string> Refine::kept_source(const Talk& talk, std::size_t number,
                                               const std::string& prompt_hash) const {
  const auto read = [&](const std::string& file) {
    return value_or_usage_error(problem::read_text_file(folder_path_ / file));
  };
  const std::string file = talk.turn_file(number);
  if (number == 1) {
    if (folder_->has_file(file)) return read(file);
    if (folder_->has_file(talk.kernel())) {
      // Kept before anything better takes its place.
      auto code = read(talk.kernel());
      value_or_usage_error(folder_->put_file(file, code));
      return code;
    }
  }
  auto record = value_or_usage_error(folder_->find(talk.turn(number)));
  if (!record || !llm::is_final(record->answer.status)) return std::nullopt;
  if (record->prompt_sha256 != prompt_hash)
    throw UsageError(
        fmt::format("{} in {} answers another prompt than this one: a problem, a text or a result "
                    "has changed since; use another folder",
                    talk.turn(number), llm::one_line(folder_path_.string())));
  if (folder_->has_file(file)) return read(file);
  return keep_code(*folder_, talk.turn(number), *record, backend_.language, file);
}

void Refine::put_prompt(const std::string& name, const llm::Prompt& prompt,
                        const std::string& hash) {
  auto asked = llm::to_json(prompt);
  asked["sha256"] = hash;
  // One at a time: the first prompt is that of all samples.
  const std::scoped_lock lock(mutex_);
  value_or_usage_error(folder_->put_prompt(name, asked));
}

// None: not answered this time.
std::optional<std::string> Refine::ask(const Talk& talk, std::size_t number,
                                       const llm::Prompt& prompt, const std::string& prompt_hash,
                                       std::string& told) {
  const std::string name = talk.turn(number);
  put_prompt(number == 1 ? fmt::format("level_{}_problem_{}", talk.id.level, talk.id.number) : name,
             prompt, prompt_hash);
  const llm::Question question{name, talk.sample, prompt};
  auto reply = ask_and_keep(asking_, *folder_,
                            {question,
                             prompt_hash,
                             {{"problem", talk.id.text()},
                              {"sample", talk.sample},
                              {"turn", number},
                              {"backend", backend_.name}},
                             backend_.language,
                             talk.turn_file(number)},
                            stop_.get_token());
  told = line_of(reply.record);
  const std::scoped_lock lock(mutex_);
  if (tally_.add(reply)) stop_.request_stop();
  if (!reply.code) tell(talk, number, told);
  return std::move(reply.code);
}

void Refine::put_row(const store::Row& row) {
  value_or_usage_error(store_->put(row));
  const std::scoped_lock lock(mutex_);
  standing_[{row.key.problem, row.key.sample}] = row.key.candidate_hash;
}

// None: it could not be judged this time.
std::optional<store::Row> Refine::result_of(const Talk& talk, std::size_t number) {
  const auto job = make_job({talk.id, talk.sample, folder_path_ / talk.turn_file(number)},
                            talk.problem, flags_.judging, devices_, *environment_);
  if (job.not_here) throw UsageError(fmt::format("{}: {}", talk.label(), *job.not_here));
  if (auto known = value_or_usage_error(store_->find(job.key))) return known;
  {
    const std::scoped_lock lock(mutex_);
    progress_->working_on(fmt::format("{} turn {}", talk.label(), number));
  }
  const auto result =
      job.candidate ? panel_->judge(job.problem, *job.candidate, stop_.get_token())
                    : judge::to_json(refused(job), options_from(flags_.judging, devices_.front()));
  if (!result) return std::nullopt;
  auto row = row_of(job, *result);
  put_row(row);
  if (row.verdict != store::kInfrastructureError) return row;
  const std::scoped_lock lock(mutex_);
  tell(talk, number,
       fmt::format("{}: {}", row.verdict, printable(result->value("message", ""), false)));
  return std::nullopt;
}

// The kernel stands under the sample's name, and its result is the newest of the sample.
void Refine::publish(const Talk& talk, const std::string& code, const store::Row& row) {
  const auto there = problem::read_text_file(folder_path_ / talk.kernel());
  if (!there || *there != code) value_or_usage_error(folder_->put_file(talk.kernel(), code));
  bool stands = false;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = standing_.find({row.key.problem, row.key.sample});
    stands = found != standing_.end() && found->second == row.key.candidate_hash;
  }
  if (!stands) put_row(row);
}

void Refine::converse(const Talk& talk) {
  const refine::Target target{flags_.target, !flags_.judging.no_timing};
  const auto most = static_cast<std::size_t>(flags_.turns);
  refine::Conversation conversation(library_, request_, talk.first);
  std::vector<store::Row> rows;
  const auto publish_best = [&] {
    if (conversation.turns() == 0) return;
    publish(talk, conversation[conversation.best()].code, rows[conversation.best()]);
  };
  while (conversation.turns() < most && !conversation.reached(target) && !stop_.stop_requested()) {
    const std::size_t number = conversation.turns() + 1;
    const auto prompt = value_or_usage_error(conversation.next());
    const auto hash = llm::hash_of(prompt);
    std::string told;
    auto code = kept_source(talk, number, hash);
    if (!code) {
      // Not while turns are read back: a run that ends there must leave the best in its place.
      publish_best();
      code = ask(talk, number, prompt, hash, told);
    }
    if (!code) break;
    auto row = result_of(talk, number);
    if (!row) break;
    conversation.add({std::move(*code), nlohmann::json::parse(row->result_json)});
    rows.push_back(std::move(*row));
    const std::scoped_lock lock(mutex_);
    tell(talk, number,
         fmt::format("{:<30} {}", told, refine::in_words(conversation[number - 1].result)));
  }
  publish_best();
  const bool reached = conversation.reached(target);
  const bool ended = reached || conversation.turns() >= most;
  const std::scoped_lock lock(mutex_);
  progress_->spare(most - conversation.turns());
  finished_ = finished_ && ended;
  if (conversation.turns() == 0) return;
  outcomes_.push_back(fmt::format("{:<20} {}: the best of {} is turn {}: {}", talk.label(),
                                  reached ? "reached the target"
                                  : ended ? "used up its turns"
                                          : "is not finished",
                                  conversation.turns(), conversation.best() + 1,
                                  refine::in_words(conversation[conversation.best()].result)));
}

void Refine::converse_all() {
  progress_.emplace("turns", talks_.size() * static_cast<std::size_t>(flags_.turns));
  in_parallel(talks_.size(), flags_.asking.workers, [this](std::size_t i) {
    // Not to be the end of the answers that other workers wait for.
    const auto failure = failure_of([&] { converse(talks_[i]); });
    if (failure.empty()) return;
    const std::scoped_lock lock(mutex_);
    if (failure_.empty()) failure_ = failure;
    stop_.request_stop();
  });
  progress_.reset();
}

void Refine::summarize() {
  std::ranges::sort(outcomes_);
  for (const auto& outcome : outcomes_) fmt::print("{}\n", outcome);
  fmt::print("{}", tally_.summary(flags_.asking, asking_.replays()));
  const auto rows = value_or_usage_error(store_->rows());
  value_or_usage_error(store::write_kernelbench_results(folder_path_, rows));
  fmt::print("{} {}\n",
             finished_ ? "score them with: kernelbench score"
                       : "run the same command again for what is missing in",
             folder_path_.string());
}

int refine(RefineFlags flags) {
  auto devices = share_words(flags.prompting, flags.judging);
  Asking asking(flags.asking);
  std::stop_source stop;
  std::optional<Workshop> workshop;  // outlives the panel, which works on while nothing is asked
  Refine refine(flags, std::move(devices), asking, stop);
  refine.plan();
  const PatientStop patient(stop);
  workshop.emplace(flags.judging);
  refine.open(workshop->environment());
  refine.converse_all();
  refine.summarize();
  if (!refine.failure().empty()) throw UsageError(refine.failure());
  return refine.finished() ? kOk : kFindings;
}

}  // namespace

Command add_refine(CLI::App& root) {
  auto flags = std::make_shared<RefineFlags>();
  auto* app = root.add_subcommand(
      "refine", "Give judgements back to the model until its kernel is fast enough; resumes");
  app->add_option("what", flags->what,
                  "a folder of samples, as `generate` makes it; with --out: problems")
      ->required();
  app->add_option("--out", flags->out,
                  "a new folder: the model's first answers are the first turn");
  app->add_option("--level", flags->levels, "of a folder's samples only these levels (repeatable)");
  app->add_option("--ids", flags->ids, "of a folder's samples only these problem numbers");
  add_set_option(*app, flags->problems);
  app->add_option("--samples", flags->samples, "with --out: conversations about each problem")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app->add_option("--turns", flags->turns, "kernels of one sample at most, the first included")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app->add_option("--target-speedup", flags->target,
                  "stop at a correct kernel whose speedup's 95 % interval begins here or higher")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_loop_options(*app, flags->prompting, flags->asking, flags->judging);
  app->footer(
      "The best kernel so far stands under the sample's name; DIR/…_turn_2.py and the like are\n"
      "all of them. docs/generate.md says more.\n"
      "Example:  kernelbench refine runs/a --provider anthropic --model claude-opus-5-5 \\\n"
      "            --backend cuda --gpu h200 --turns 4 --target-speedup 1.5\n"
      "          kernelbench refine level1/23 level2/12 --out runs/b --provider openai \\\n"
      "            --model gpt-5 --backend cpp --size small");
  return {app, [flags] { return refine(*flags); }};
}

}  // namespace kb::cli
