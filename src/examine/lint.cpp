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
    default: return {"load", last_line(fault.text)};
  }
}

// Error: no worker can be started.
std::expected<Report, std::string> look_at(const problem::Problem& problem, Station& station,
                                           const Terms& terms) {
  Report report{.label = problem.label, .name = problem.name, .hash = problem.hash};
  const auto start = Clock::now();
  const auto reply = station.ask("lint", problem);
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (!reply) {
    if (reply.error().kind == FaultKind::infrastructure) return std::unexpected(reply.error().text);
    report.findings.push_back(finding_of(reply.error(), terms));
  } else if (auto parsed = parse_reply(*reply, report); !parsed) {
    report.findings.push_back(
        {"crash", fmt::format("the worker's report makes no sense: {}", parsed.error())});
  }
  return report;
}

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
                                                     const Terms& terms, unsigned jobs,
                                                     const Watcher& watcher) {
  std::vector<Report> reports(problems.size());
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;  // of the failure and the watcher
  std::string failure;
  const auto work = [&] {
    Station station(environment, terms);
    for (std::size_t i; (i = next++) < problems.size();) {
      auto report = look_at(problems[i], station, terms);
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
