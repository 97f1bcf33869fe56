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

namespace kb::examine {
namespace {

using Clock = std::chrono::steady_clock;
using worker::Fault;
using worker::FaultKind;

constexpr std::size_t kMaxEntries = 64;
constexpr std::size_t kMaxText = 2000;

// What a worker is asked, and how its reply is read.
struct Question {
  const char* operation;
  std::expected<void, std::string> (*parse)(const nlohmann::json&, Report&);
};
constexpr Question kLint{"lint", parse_reply};
constexpr Question kOnce{"once", parse_run};

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

Finding finding_of(const Fault& fault, const Terms& terms) {
  switch (fault.kind) {
    case FaultKind::out_of_memory: return {"memory", last_line(fault.text)};
    case FaultKind::timeout:
      return {
          "timeout",
          fmt::format("not done within {} s",
                      std::chrono::duration_cast<std::chrono::seconds>(terms.time_limit).count())};
    case FaultKind::crashed: return {"crash", last_line(fault.text)};
    case FaultKind::runtime: return {"device", last_line(fault.text)};
    default: return {"load", last_line(fault.text)};
  }
}

// Error: no worker can be started, or none can use the device.
std::expected<Report, std::string> look_at(const problem::Problem& problem,
                                           const Question& question, Station& station,
                                           const Terms& terms) {
  Report report{.label = problem.label, .name = problem.name, .hash = problem.hash};
  if (auto ready = station.prepare(); !ready) return std::unexpected(ready.error().text);
  const auto start = Clock::now();
  const auto reply = station.ask(question.operation, problem);
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (!reply) {
    const auto& [kind, text] = reply.error();
    if (kind == FaultKind::infrastructure || kind == FaultKind::unsupported)
      return std::unexpected(last_line(text));
    report.findings.push_back(finding_of(reply.error(), terms));
  } else if (auto parsed = question.parse(*reply, report); !parsed) {
    report.findings.push_back(
        {"crash", fmt::format("the worker's report makes no sense: {}", parsed.error())});
  }
  return report;
}

std::expected<std::vector<Report>, std::string> look_at_all(
    const Environment& environment, std::span<const problem::Problem> problems,
    const Question& question, const Terms& terms, unsigned jobs, const Watcher& watcher) {
  std::vector<Report> reports(problems.size());
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;  // of the failure and the watcher
  std::string failure;
  const auto work = [&] {
    Station station(environment, terms);
    for (std::size_t i; (i = next++) < problems.size();) {
      auto report = look_at(problems[i], question, station, terms);
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
    const auto count = std::min<std::size_t>(std::max(jobs, 1u), problems.size());
    for (std::size_t i = 0; i < count; ++i) stations.emplace_back(work);
  }
  if (!failure.empty()) return std::unexpected(failure);
  return reports;
}

// What every reply holds. Error: one sentence.
std::expected<void, std::string> parse_common(const nlohmann::json& reply, Report& report) {
  const auto bad = [](std::string why) { return std::unexpected(std::move(why)); };
  const auto* findings = list_of(reply, "findings");
  if (!findings) return bad("it has no list of findings");
  auto size = text_of(reply, "size");
  if (!size) return bad(size.error());
  for (const auto& entry : *findings) {
    if (!entry.is_object()) return bad("a finding is not an object");
    auto rule = text_of(entry, "rule");
    auto text = text_of(entry, "text");
    if (!rule) return bad(rule.error());
    if (!text) return bad(text.error());
    report.findings.push_back({std::move(*rule), std::move(*text)});
  }
  auto spec = worker::parse_spec(reply.value("spec", nlohmann::json()));
  if (!spec) return bad(spec.error());
  report.spec = std::move(*spec);
  report.size = std::move(*size);
  return {};
}

}  // namespace

std::expected<void, std::string> parse_reply(const nlohmann::json& reply, Report& report) {
  const auto bad = [](std::string why) { return std::unexpected(std::move(why)); };
  if (auto common = parse_common(reply, report); !common) return common;
  const auto* notes = list_of(reply, "notes");
  if (!notes) return bad("it has no list of notes");
  auto altered = text_of(reply, "altered");
  if (!altered) return bad(altered.error());
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
  report.altered = std::move(*altered);
  return {};
}

std::expected<void, std::string> parse_run(const nlohmann::json& reply, Report& report) {
  if (auto common = parse_common(reply, report); !common) return common;
  const auto peak = reply.find("peak_bytes");
  if (peak == reply.end() || !peak->is_number_unsigned())
    return std::unexpected("its peak_bytes is not a count");
  report.peak_bytes = peak->get<std::uint64_t>();
  return {};
}

std::expected<std::vector<Report>, std::string> lint(const Environment& environment,
                                                     std::span<const problem::Problem> problems,
                                                     const Terms& terms, unsigned jobs,
                                                     const Watcher& watcher) {
  return look_at_all(environment, problems, kLint, terms, jobs, watcher);
}

std::expected<std::vector<Report>, std::string> run_once(const Environment& environment,
                                                         std::span<const problem::Problem> problems,
                                                         const Terms& terms, unsigned jobs,
                                                         const Watcher& watcher) {
  auto reports = look_at_all(environment, problems, kOnce, terms, jobs, watcher);
  if (!reports || jobs <= 1) return reports;
  Station alone(environment, terms);
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const auto& findings = (*reports)[i].findings;
    if (std::ranges::find(findings, "memory", &Finding::rule) == findings.end()) continue;
    auto report = look_at(problems[i], kOnce, alone, terms);
    if (!report) return std::unexpected(report.error());
    (*reports)[i] = std::move(*report);
  }
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
