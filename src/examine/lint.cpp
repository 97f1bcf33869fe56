#include "examine/lint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <thread>

#include "problem/text_file.h"
#include "worker/torch_pool.h"

namespace kb::examine {
namespace {

using Clock = std::chrono::steady_clock;
using worker::Fault;
using worker::FaultKind;

constexpr std::size_t kMaxEntries = 64;
constexpr std::size_t kMaxText = 2000;
constexpr std::chrono::milliseconds kHelloLimit{300'000};
// Beside what the problem may use: the process that has torch imported.
constexpr std::uint64_t kWorkerBytes = 1ull << 30;
constexpr const char* kWeightSeed = "42";  // the judge's

std::expected<std::string, std::string> text_of(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_string())
    return std::unexpected(fmt::format("its {} is not a text", name));
  return problem::printable(found->get_ref<const std::string&>().substr(0, kMaxText));
}

const nlohmann::json* list_of(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_array() && found->size() <= kMaxEntries ? &*found
                                                                                  : nullptr;
}

// The last line of a traceback, or the sentence.
std::string last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (const auto end = text.rfind('\n'); end != text.npos) text.remove_prefix(end + 1);
  return problem::printable(text.substr(0, kMaxText));
}

Finding finding_of(const Fault& fault, const Options& options) {
  const auto text = last_line(fault.text);
  switch (fault.kind) {
    case FaultKind::out_of_memory: return {"memory", text};
    case FaultKind::timeout:
      return {"timeout",
              fmt::format(
                  "not done within {} s",
                  std::chrono::duration_cast<std::chrono::seconds>(options.time_limit).count())};
    case FaultKind::crashed: return {"crash", text};
    default: return {"load", text};
  }
}

// One worker after the other, each for as many problems as it survives.
class Station {
 public:
  Station(const Environment& environment, const Options& options)
      : options_(options),
        pool_(environment.launcher, {.python = environment.python,
                                     .package_folder = environment.package_folder,
                                     .threads = 1,
                                     .memory_bytes = options.memory_bytes + kWorkerBytes,
                                     .bind_threads = false}) {}

  std::expected<Report, std::string> look_at(const problem::Problem& problem) {
    if (!worker_) {
      auto started = pool_.take();
      if (!started) return std::unexpected(started.error().text);
      worker_.emplace(std::move(*started));
      if (auto hello = worker_->await_hello(kHelloLimit); !hello)
        return std::unexpected(hello.error().text);
    }
    Report report{.label = problem.label, .name = problem.name, .hash = problem.hash};
    const auto start = Clock::now();
    const auto reply = worker_->request({{"op", "lint"},
                                         {"source", problem.source},
                                         {"path", problem.path.filename().string()},
                                         {"size", options_.size},
                                         {"set", options_.set},
                                         {"precision", "fp32"},
                                         {"device", "cpu"},
                                         {"weight_seed", kWeightSeed},
                                         {"memory_bytes", options_.memory_bytes},
                                         {"threads", 1}},
                                        {}, options_.time_limit);
    report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (!reply) {
      report.findings.push_back(finding_of(reply.error(), options_));
      // What did not answer, or not sensibly, is ended; its child has ended in the other cases.
      if (const auto kind = reply.error().kind;
          kind != FaultKind::problem && kind != FaultKind::out_of_memory)
        worker_.reset();
    } else if (auto parsed = parse_reply(*reply, report); !parsed) {
      report.findings.push_back(
          {"crash", fmt::format("the worker's report makes no sense: {}", parsed.error())});
    }
    return report;
  }

 private:
  const Options& options_;
  worker::TorchPool pool_;
  std::optional<worker::Worker> worker_;
};

}  // namespace

std::expected<void, std::string> parse_reply(const nlohmann::json& reply, Report& report) {
  const auto bad = [](std::string why) { return std::unexpected(std::move(why)); };
  const auto* findings = list_of(reply, "findings");
  const auto* notes = list_of(reply, "notes");
  if (!findings || !notes) return bad("it has no lists of findings and notes");
  auto size = text_of(reply, "size");
  auto altered = text_of(reply, "altered");
  if (!size) return bad(size.error());
  if (!altered) return bad(altered.error());
  for (const auto& entry : *findings) {
    if (!entry.is_object()) return bad("a finding is not an object");
    auto rule = text_of(entry, "rule");
    auto text = text_of(entry, "text");
    if (!rule) return bad(rule.error());
    if (!text) return bad(text.error());
    report.findings.push_back({std::move(*rule), std::move(*text)});
  }
  for (const auto& note : *notes) {
    if (!note.is_string()) return bad("a note is not a text");
    report.notes.push_back(
        problem::printable(note.get_ref<const std::string&>().substr(0, kMaxText)));
  }
  if (const auto weakest = reply.find("weakest"); weakest != reply.end() && !weakest->is_null()) {
    if (!weakest->is_array() || weakest->size() != 2 || !(*weakest)[0].is_string() ||
        !(*weakest)[1].is_number())
      return bad("its weakest weight is not a name and a number");
    report.weakest = {
        problem::printable((*weakest)[0].get_ref<const std::string&>().substr(0, kMaxText)),
        (*weakest)[1].get<double>()};
  }
  auto spec = worker::parse_spec(reply.value("spec", nlohmann::json()));
  if (!spec) return bad(spec.error());
  report.spec = std::move(*spec);
  report.size = std::move(*size);
  report.altered = std::move(*altered);
  return {};
}

std::expected<std::vector<Report>, std::string> lint(const Environment& environment,
                                                     std::span<const problem::Problem> problems,
                                                     const Options& options,
                                                     const Watcher& watcher) {
  std::vector<Report> reports(problems.size());
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;  // of the failure and the watcher
  std::string failure;
  const auto work = [&] {
    Station station(environment, options);
    for (std::size_t i; (i = next++) < problems.size();) {
      auto report = station.look_at(problems[i]);
      const std::scoped_lock lock(mutex);
      if (!report) {
        failure = report.error();
        next = problems.size();
        return;
      }
      reports[i] = std::move(*report);
      if (watcher) watcher(reports[i]);
    }
  };
  {
    std::vector<std::jthread> stations;
    const auto count = std::min<std::size_t>(std::max(options.jobs, 1u), problems.size());
    for (std::size_t i = 0; i < count; ++i) stations.emplace_back(work);
  }
  if (!failure.empty()) return std::unexpected(failure);
  return reports;
}

void find_duplicates(std::span<Report> reports, std::span<const problem::Problem> all) {
  std::map<std::string, std::vector<std::string>> labels;
  for (const auto& problem : all) labels[problem.hash].push_back(problem.label);
  for (auto& report : reports) {
    auto twins = labels[report.hash];
    std::erase(twins, report.label);
    if (!twins.empty())
      report.findings.push_back(
          {"duplicate", fmt::format("the same program as {}", fmt::join(twins, ", "))});
  }
}

}  // namespace kb::examine
