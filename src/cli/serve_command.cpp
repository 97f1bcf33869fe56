// kernelbench serve: judges what a program asks for, one JSON object a line, until there is no
// more.
//
// What one evaluation alone spends most of its time on is done once, or ahead: the device is open,
// torch is imported in workers that wait, and the reference of the last problem is loaded. Several
// threads read: while a GPU judges one request others are compiled, and requests about one problem
// follow each other.

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "build/files.h"
#include "build/scratch.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/judging.h"
#include "cli/output_file.h"
#include "cli/problem_selection.h"
#include "cli/samples.h"
#include "device/cuda/cuda.h"
#include "digest/sha256.h"
#include "judge/panel.h"
#include "problem/problem.h"
#include "version.h"

namespace kb::cli {
namespace {

namespace fs = std::filesystem;

// Compiled requests that each judge can choose from.
constexpr std::size_t kWaiting = 8;

struct ServeFlags {
  JudgingFlags judging;
  std::string problems;
  SampleFlags samples;  ///< --jobs alone
  bool end_with_parent = false;
};

/// One line that was read. Its words must all mean something: one that is misspelt is no default.
struct Request {
  std::string problem, candidate, backend;
  std::optional<std::string> problem_source, source;  ///< the files' texts; then those are names
};

Request parse(const std::string& line, nlohmann::json& id) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) throw UsageError("a request is one JSON object on a line");
  if (const auto given = json.find("id"); given != json.end()) {
    if (given->is_structured()) throw UsageError("the 'id' of a request is a string or a number");
    id = *given;
  }
  Request request;
  for (const auto& [name, value] : json.items()) {
    if (name == "id") continue;
    std::string* const word = name == "problem"          ? &request.problem
                              : name == "candidate"      ? &request.candidate
                              : name == "backend"        ? &request.backend
                              : name == "problem_source" ? &request.problem_source.emplace()
                              : name == "source"         ? &request.source.emplace()
                                                         : nullptr;
    if (word == nullptr)
      throw UsageError(fmt::format(
          "a request has the members id, problem, candidate, backend, problem_source and source, "
          "and none named '{}'; options are those of the command",
          problem::printable(name)));
    if (!value.is_string()) throw UsageError(fmt::format("'{}' of a request is a string", name));
    *word = value.get<std::string>();
    if (!name.ends_with("source") && word->find('\0') != std::string::npos)
      throw UsageError(fmt::format("'{}' of a request has a NUL in it", name));
  }
  if (request.problem.empty() || request.candidate.empty())
    throw UsageError("a request names its problem and its candidate (a file)");
  return request;
}

/// The files of texts, each in a folder of its own, in one that is made when it is needed.
/// Thread-safe.
class Texts {
 public:
  /// A file of this name in `folder`; kept where it is there already.
  fs::path put(const std::string& folder, const std::string& name, const std::string& text) {
    if (fs::path(name).filename() != name || name == "." || name == "..")
      throw UsageError(fmt::format("beside its source, '{}' is to be a plain file name",
                                   problem::printable(name)));
    const std::scoped_lock lock(mutex_);
    if (!scratch_) scratch_.emplace();
    if (!*scratch_) throw UsageError("no temporary folder can be made");
    const auto file = scratch_->path() / folder / name;
    if (fs::exists(file)) return file;
    fs::create_directories(file.parent_path());
    write_output_file(file.string(), text);
    return file;
  }
  void clear() {
    const std::scoped_lock lock(mutex_);
    scratch_.reset();
  }
  /// A sentence without our folders: they say nothing to the caller.
  std::string clean(std::string sentence) {
    const std::scoped_lock lock(mutex_);
    if (!scratch_ || !*scratch_) return sentence;
    const std::string prefix = scratch_->path().string() + '/';
    for (std::size_t at; (at = sentence.find(prefix)) != std::string::npos;) {
      const auto behind = sentence.find('/', at + prefix.size());
      sentence.erase(at, behind == std::string::npos ? prefix.size() : behind + 1 - at);
    }
    return sentence;
  }

 private:
  std::mutex mutex_;
  std::optional<build::Scratch> scratch_;
};

/// Takes a text's folder away.
struct Removal {
  fs::path folder;
  ~Removal() { static_cast<void>(build::remove_tree(folder)); }
};

// Nobody waits for the answers any more: what is under way would be judged for nothing, and beside
// what a successor judges. The workers go with this process.
void end_when_abandoned(const std::stop_token& stop, bool with_parent, Texts& texts) {
  constexpr int kLookEveryMs = 200;
  const pid_t parent = ::getppid();
  pollfd out{STDOUT_FILENO, 0, 0};
  while (!stop.stop_requested())
    if (::poll(&out, 1, kLookEveryMs) > 0 || (with_parent && ::getppid() != parent)) {
      texts.clear();
      ::_exit(kFindings);
    }
}

class Service {
 public:
  /// `devices` are of one kind; `compilations`: how many at a time beside GPUs; `texts` outlives
  /// this.
  Service(const ServeFlags& flags, std::vector<std::string> devices, unsigned compilations,
          Texts& texts)
      : flags_(flags),
        devices_(std::move(devices)),
        texts_(texts),
        workshop_(flags.judging),
        panel_(value_or_usage_error(judge::Panel::open(
            workshop_.environment(), options_from(flags.judging, devices_.front()), devices_,
            compilations))) {}

  /// Until the end of the input, or nobody reads the answers any more.
  void serve(std::size_t threads);
  bool lost_its_reader() const { return deaf_; }

 private:
  bool next(std::string& line);
  nlohmann::json answer(const std::string& line, nlohmann::json& id);
  nlohmann::json judge(const Request& request, const std::string& candidate_file);
  void write(const nlohmann::json& json);

  const ServeFlags& flags_;
  std::vector<std::string> devices_;
  Texts& texts_;
  std::atomic<std::size_t> asked_ = 0;
  Workshop workshop_;
  std::unique_ptr<judge::Panel> panel_;
  std::mutex reading_, writing_;
  std::atomic<bool> deaf_ = false;
};

bool Service::next(std::string& line) {
  const std::scoped_lock lock(reading_);
  while (!deaf_ && std::getline(std::cin, line))
    if (line.find_first_not_of(" \t\r") != std::string::npos) return true;
  return false;
}

void Service::write(const nlohmann::json& json) {
  const auto line = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  const std::scoped_lock lock(writing_);
  if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() || std::fflush(stdout) != 0)
    deaf_ = true;
}

nlohmann::json Service::answer(const std::string& line, nlohmann::json& id) {
  const auto request = parse(line, id);
  if (!request.source) return judge(request, request.candidate);
  const auto file = texts_.put(std::to_string(++asked_), request.candidate, *request.source);
  const Removal afterwards{file.parent_path()};
  return judge(request, file.string());
}

nlohmann::json Service::judge(const Request& request, const std::string& candidate_file) {
  problem::Problem problem;
  if (request.problem_source) {
    const auto& text = *request.problem_source;
    // The same file for the same text: by that the reference is known again.
    const auto file = texts_.put(sha256_hex(text), request.problem, text);
    problem = value_or_usage_error(problem::load_file(file));
    problem.label = request.problem;
  } else {
    problem = value_or_usage_error(problem::find(request.problem, flags_.problems));
  }
  auto judging = flags_.judging;
  if (!request.backend.empty()) judging.backend = request.backend;
  const auto candidate = load_candidate(judging, candidate_file);
  const auto language = candidate ? candidate->language : problem::Language::unknown;
  const auto device = device_for(language, devices_);
  if (!candidate)
    return refusal_json(problem, problem::Candidate{.path = candidate_file}, candidate.error(),
                        options_from(judging, device));
  if (const auto refused = problem::refused_precision(language, judging.precision, device == "cpu"))
    throw UsageError(*refused);
  return *panel_->judge(problem, *candidate, std::stop_token());
}

void Service::serve(std::size_t threads) {
  write({{"ready", true}, {"version", KERNELBENCH_VERSION}, {"devices", devices_}});
  std::vector<std::jthread> readers;
  for (std::size_t i = 0; i < threads; ++i)
    readers.emplace_back([this] {
      for (std::string line; next(line);) {
        nlohmann::json id, json;
        const auto failure = failure_of([&] { json = answer(line, id); });
        if (!failure.empty()) json = {{"error", texts_.clean(failure)}};
        if (auto said = json.find("message"); said != json.end() && said->is_string())
          *said = texts_.clean(said->get<std::string>());
        json["id"] = std::move(id);
        write(json);
      }
    });
}

int serve(const ServeFlags& flags) {
  auto devices = devices_of(flags.judging);
  if (devices.empty()) devices.emplace_back(cuda::device_count() > 0 ? "cuda:0" : "cpu");
  const bool cpu = devices.front() == "cpu";
  for (const auto& device : devices)
    if ((device == "cpu") != cpu)
      throw UsageError("serve judges on the CPU or on GPUs; --devices lists both");
  const unsigned compilations = compilers_beside(devices.size(), flags.samples.jobs);
  Texts texts;
  Service service(flags, devices, compilations, texts);
  const std::jthread watcher(end_when_abandoned, flags.end_with_parent, std::ref(texts));
  service.serve(kWaiting * devices.size() + (cpu ? 0 : compilations));
  return service.lost_its_reader() ? kFindings : kOk;
}

}  // namespace

Command add_serve(CLI::App& root) {
  auto flags = std::make_shared<ServeFlags>();
  auto* app = root.add_subcommand(
      "serve", "Judge what another program asks for, line by line, with everything kept ready");
  add_set_option(*app, flags->problems);
  add_jobs_option(*app, flags->samples);
  app->add_flag("--end-with-parent", flags->end_with_parent,
                "end at once when the process that started this one does");
  add_judging_options(*app, flags->judging);
  app->footer(
      "Reads one JSON object a line, writes one for each, in the order in which they are done:\n"
      "what `eval --json` prints, or {\"error\": \"a sentence\"}, and the request's \"id\".\n"
      "With \"source\" (and \"problem_source\") the texts come with the request, so that it may "
      "come\n"
      "from another machine: ssh gpu1 kernelbench serve. It ends with its input.\n"
      "Example:  echo '{\"id\": 1, \"problem\": \"level1/19\", \"candidate\": "
      "\"examples/run_cpu/level_1_problem_19_sample_0_kernel.cpp\"}' | "
      "kernelbench serve --size small --device cpu");
  return {app, [flags] { return serve(*flags); }};
}

}  // namespace kb::cli
