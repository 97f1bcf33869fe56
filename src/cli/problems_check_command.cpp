// kernelbench problems check: can kernels be judged by these problems?

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/judging.h"
#include "cli/problem_selection.h"
#include "cli/progress.h"
#include "examine/lint.h"
#include "judge/device.h"
#include "problem/problem.h"

namespace kb::cli {
namespace {

// Of the host. Models are made there for a GPU, too, at public sizes of up to 9 GB, one after the
// other in a process that keeps what it has freed.
constexpr double kMemoryGb = 4;
constexpr double kGpuMemoryGb = 32;

struct CheckFlags {
  std::vector<std::string> problems;
  SelectionFlags selection;
  std::string size = "auto";
  std::vector<std::string> set;
  bool once = false;
  std::string device = "cpu";
  unsigned jobs = 0;
  double timeout_s = 300;
  double memory_gb = 0;  // 0: by the device
  std::string sandbox = "auto";
  std::string python;
  bool json = false;
};

/// What is to be looked at, what could not even be read, and what it must not be a copy of.
struct Subjects {
  std::vector<problem::Problem> problems;
  std::vector<examine::Report> unreadable;
  std::vector<problem::Problem> all;
};

Subjects select(const CheckFlags& flags) {
  Subjects subjects;
  const Selection selection(flags.selection);
  for (const auto& entry : selection.catalog().entries()) {
    auto problem = selection.catalog().load(entry.id);
    if (problem) subjects.all.push_back(*problem);
    if (!flags.problems.empty()) continue;
    if (problem && selection.has(entry, *problem))
      subjects.problems.push_back(std::move(*problem));
    else if (!problem && selection.has(entry))
      subjects.unreadable.push_back(
          {.label = entry.id.text(), .name = entry.name, .findings = {{"load", problem.error()}}});
  }
  for (const auto& argument : flags.problems) {
    auto problem = value_or_usage_error(problem::find(argument, flags.selection.set));
    const auto same_file = [&](const auto& other) { return other.path == problem.path; };
    if (std::ranges::any_of(subjects.problems, same_file)) continue;
    // Under the label that it was asked by, or it would be a copy of itself.
    if (const auto known = std::ranges::find_if(subjects.all, same_file);
        known != subjects.all.end())
      known->label = problem.label;
    else
      subjects.all.push_back(problem);
    subjects.problems.push_back(std::move(problem));
  }
  if (subjects.problems.empty() && subjects.unreadable.empty())
    throw UsageError("no problem is selected by --level, --family, --name or --subset");
  return subjects;
}

nlohmann::json json_of(const examine::Report& report) {
  nlohmann::json json = {{"id", report.label},    {"name", report.name},
                         {"hash", report.hash},   {"size", report.size},
                         {"notes", report.notes}, {"seconds", report.seconds}};
  json["findings"] = nlohmann::json::array();
  for (const auto& finding : report.findings)
    json["findings"].push_back({{"rule", finding.rule}, {"text", finding.text}});
  if (!report.altered.empty()) json["altered"] = report.altered;
  if (report.weakest)
    json["weakest"] = {{"weight", report.weakest->first}, {"change", report.weakest->second}};
  if (report.peak_bytes) json["peak_bytes"] = *report.peak_bytes;
  return json;
}

// One line a problem, and one more for each further finding and note.
void print(const examine::Report& report) {
  std::vector<std::string> lines;
  for (const auto& finding : report.findings)
    lines.push_back(fmt::format("{}: {}", finding.rule, finding.text));
  if (lines.empty()) lines.emplace_back("ok");
  for (const auto& note : report.notes) lines.push_back(fmt::format("note: {}", note));
  fmt::print("{:<11} {:<44} {:<7} {:>5.1f} s  {}\n", report.label, report.name, report.size,
             report.seconds, lines.front());
  for (std::size_t i = 1; i < lines.size(); ++i) fmt::print("{:73}{}\n", "", lines[i]);
}

void print_summary(const std::vector<examine::Report>& reports, double seconds) {
  std::map<std::string, int> by_rule;
  int bad = 0;
  for (const auto& report : reports) {
    bad += report.findings.empty() ? 0 : 1;
    for (const auto& finding : report.findings) ++by_rule[finding.rule];
  }
  std::string rules;
  for (const auto& [rule, count] : by_rule)
    rules += fmt::format("{}{} {}", rules.empty() ? ": " : ", ", rule, count);
  fmt::print("{} problems in {:.0f} s, {} with findings{}\n", reports.size(), seconds, bad, rules);
}

// What is looked at, and where.
examine::Terms terms_from(const CheckFlags& flags) {
  const auto device = value_or_usage_error(judge::parse_device(flags.device));
  const bool gpu = device.kind != "cpu";
  if (gpu && !flags.once)
    throw UsageError("problems are looked at on the CPU; on a GPU they can be run: --once");
  const double memory_gb = flags.memory_gb > 0 ? flags.memory_gb : gpu ? kGpuMemoryGb : kMemoryGb;
  examine::Terms terms{
      .size = flags.size,
      .set = assignments(flags.set),
      .time_limit = std::chrono::milliseconds(static_cast<std::int64_t>(flags.timeout_s * 1000)),
      .memory_bytes = static_cast<std::uint64_t>(memory_gb * 1e9),
      .device = device.kind};
  if (gpu) terms.needs = value_or_usage_error(judge::open_device(device.text()))->worker_needs();
  return terms;
}

int check(const CheckFlags& flags) {
  const auto start = std::chrono::steady_clock::now();
  const auto terms = terms_from(flags);
  auto subjects = select(flags);
  const JudgingFlags judging{.sandbox = flags.sandbox, .python = flags.python};
  const auto launcher = make_launcher(judging);
  const auto root = problem::installation_root();
  const examine::Environment environment{
      *launcher,
      value_or_usage_error(worker::probe_python(worker::choose_python(flags.python, root))),
      root / "python"};
  const unsigned jobs = flags.jobs > 0          ? flags.jobs
                        : terms.device != "cpu" ? 1u
                                                : std::max(std::thread::hardware_concurrency(), 1u);
  std::vector<examine::Report> reports;
  {
    Progress progress("checked", subjects.problems.size());
    const auto look = flags.once ? examine::run_once : examine::lint;
    reports = value_or_usage_error(
        look(environment, subjects.problems, terms, jobs, [&](const examine::Report& report) {
          progress.working_on(report.label);
          progress.done("");
        }));
  }
  if (!flags.once) examine::find_duplicates(reports, subjects.all);
  std::ranges::move(subjects.unreadable, std::back_inserter(reports));

  if (flags.json) {
    auto json = nlohmann::json::array();
    for (const auto& report : reports) json.push_back(json_of(report));
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    for (const auto& report : reports)
      if (!flags.once || !report.findings.empty()) print(report);
    print_summary(reports,
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  const bool clean = std::ranges::all_of(reports, [](const auto& r) { return r.findings.empty(); });
  return clean ? kOk : kFindings;
}

}  // namespace

Command add_problems_check(CLI::App& problems) {
  auto flags = std::make_shared<CheckFlags>();
  auto* app = problems.add_subcommand(
      "check", "Run problems and look for what makes them unfit to judge kernels by");
  app->add_option("problems", flags->problems,
                  "ids such as level1/19, or problem files; default: the whole set");
  add_selection_options(*app, flags->selection);
  app->add_option("--size", flags->size,
                  "auto: small where a file has that size, else public; or a size by name")
      ->capture_default_str();
  app->add_option("--set", flags->set,
                  "replace a constant of the problems, after --size: NAME=VALUE (repeatable)");
  app->add_flag("--once", flags->once,
                "only build each model and call it once: does it run, is what comes out finite?");
  app->add_option("--device", flags->device, "with --once: cpu, or a GPU such as cuda:0")
      ->capture_default_str();
  app->add_option("--jobs", flags->jobs, "problems at a time; default: one a CPU, on a GPU 1")
      ->check(CLI::Range(1, 1024));
  app->add_option("--timeout", flags->timeout_s, "seconds for one problem")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--memory", flags->memory_gb,
                  "GB of the host's memory that one problem may use; default 4, on a GPU 32")
      ->check(CLI::Range(0.25, 1e6));
  add_sandbox_option(*app, flags->sandbox);
  add_python_option(*app, flags->python);
  app->add_flag("--json", flags->json, "print a JSON array");
  app->footer(
      "A finding is an output that does not vary with the inputs, is within tolerance of zero or "
      "of a\n"
      "constant, is not finite or not what float64 gives, an input or a weight without effect, or "
      "a copy of\n"
      "another problem. Exit code 1 when there is one.\n"
      "--once prints those alone that do not run; --json has all, with the device's memory in "
      "use.\n"
      "Example:  kernelbench problems check --level 1\n"
      "          kernelbench problems check --once --device cuda:0 --size public --level 1");
  return {app, [flags] { return check(*flags); }};
}

}  // namespace kb::cli
