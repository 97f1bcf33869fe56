#include "profile/profiler.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "build/files.h"
#include "build/scratch.h"
#include "profile/raw_page.h"
#include "worker/torch_pool.h"

namespace kb::profile {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

namespace {

constexpr std::uint64_t kMaxAnswerBytes = 4ull << 20;
constexpr std::uint64_t kMaxReportBytes = 256ull << 20;
constexpr std::uint64_t kMaxCodeBytes = 16ull << 20;
// A candidate may fill what it can write to.
constexpr build::Usage kMaxUsage{.bytes = 1ull << 30, .entries = 10'000};
// Nsight Compute saves the GPU's memory on the host before it replays a kernel.
constexpr std::uint64_t kNcuBytes = 16ull << 30;
constexpr std::uint64_t kPageBytes = 4ull << 30;
constexpr milliseconds kPageLimit{120'000};
constexpr milliseconds kGlance{200};

constexpr const char* kAnswer = "answer.json";
constexpr const char* kReport = "report.ncu-rep";

/// How a process ended that should have answered.
std::string end_of(const sandbox::Exit& end, std::string_view printed) {
  while (printed.ends_with('\n')) printed.remove_suffix(1);
  if (const auto line = printed.rfind('\n'); line != printed.npos) printed.remove_prefix(line + 1);
  std::string how = end.out_of_memory ? "the profiled process was ended by its memory limit"
                    : end.exited
                        ? fmt::format("the profiled process exited with status {}", end.code)
                        : fmt::format("the profiled process was ended by signal {} ({})", end.code,
                                      ::strsignal(end.code));
  if (!printed.empty()) how += ": " + clean(printed, 600);
  return how;
}

}  // namespace

/// One start of the worker.
struct Profiler::Run {
  build::Scratch scratch;
  nlohmann::json request;
  std::vector<fs::path> shown;
  std::string printed;    // by the worker and by Nsight Compute
  nlohmann::json answer;  // null when there is none

  fs::path request_folder() const { return scratch.path() / "request"; }
  fs::path out() const { return scratch.path() / "out"; }
};

Profiler::Profiler(const judge::Environment& environment, const judge::Options& options,
                   const Device& device, fs::path folder)
    : environment_(environment),
      options_(options),
      needs_(judge::needs_of_python(device)),
      folder_(fs::absolute(folder)) {
  profile_.profiler = "PyTorch's profiler";
  if (options.device == "cpu") {
    profile_.obstacle = "hardware counters are read on a GPU";
  } else if (auto ncu = find_ncu(ncu_folders())) {
    profile_.profiler = "Nsight Compute " + ncu->version;
    ncu_ = std::move(*ncu);
  } else {
    profile_.obstacle = ncu.error();
  }
}

void Profiler::reference(const problem::Problem& problem) {
  add("reference", "reference", problem, {}, {});
}

void Profiler::compiled(const problem::Problem& problem) {
  add("compiled", "compiled", problem, {}, {});
}

void Profiler::candidate(const problem::Problem& problem, const problem::Candidate& candidate,
                         const build::Result& build) {
  std::vector<fs::path> shown;
  for (const auto& artifact : build.artifacts) shown.push_back(artifact.path);
  if (candidate.backend != problem::Backend::python) {
    if (options_.device == "cpu") {
      profile_.sides.push_back(
          {.name = "candidate",
           .error = "a native kernel on the CPU has neither a GPU's counters nor PyTorch's "
                    "operators: profile it with the system's tools (perf)"});
      return;
    }
    auto libraries = nlohmann::json::array();
    for (const auto& path : shown) libraries.push_back(path.string());
    add("candidate", "native", problem, {{"libraries", std::move(libraries)}}, shown);
    return;
  }
  auto extensions = nlohmann::json::array();
  for (const auto& artifact : build.artifacts)
    extensions.push_back({{"name", artifact.name}, {"path", artifact.path.string()}});
  add("candidate", "python", problem,
      {{"source", candidate.source},
       {"path", candidate.path.filename().string()},
       {"language", problem::name_of(candidate.language)},
       {"extensions", std::move(extensions)}},
      shown);
}

void Profiler::add(const std::string& name, const std::string& subject,
                   const problem::Problem& problem, nlohmann::json request,
                   const std::vector<fs::path>& shown) {
  auto terms = judge::load_request("profile", options_);
  terms.update(request.is_null() ? nlohmann::json::object() : request);
  terms["subject"] = subject;
  terms["problem_source"] = problem.source;
  terms["problem_path"] = problem.path.filename().string();
  if (ncu_) {
    Run run{.request = terms, .shown = shown};
    Side side = counted(run, name);
    // The obstacle is the machine's, not the model's: the next will meet it too.
    if (ncu_) {
      profile_.sides.push_back(std::move(side));
      return;
    }
    profile_.profiler = "PyTorch's profiler";
  }
  Run run{.request = std::move(terms), .shown = shown};
  profile_.sides.push_back(operated(run, name));
}

Side Profiler::counted(Run& run, const std::string& name) {
  Side side{.name = name};
  run.request["mode"] = "counters";
  const auto done = execute(run, profiling_command(*ncu_, run.out() / kReport, {}));
  if (auto obstacle = obstacle_in(run.printed); !obstacle.empty()) {
    profile_.obstacle = std::move(obstacle);
    ncu_.reset();
    return side;
  }
  keep(side, run, "compiled.txt", name + ".code.txt", kMaxCodeBytes);
  if (!done)
    side.error = done.error();
  else if (side.error = error_in(run.answer); side.error.empty()) {
    keep(side, run, kReport, name + ".ncu-rep", kMaxReportBytes);
    const auto report = folder_ / (name + ".ncu-rep");
    if (side.files.empty() || side.files.back() != report) {
      side.counters = Counters{};  // without a launch there is no report
      return side;
    }
    if (auto launches = read_report(report)) {
      side.cut_short = launches->size() >= kMaxLaunches;
      side.counters = counters_of(std::move(*launches));
    } else {
      side.error = launches.error();
    }
  }
  return side;
}

Side Profiler::operated(Run& run, const std::string& name) {
  Side side{.name = name};
  run.request["mode"] = "operators";
  const auto done = execute(run, {});
  keep(side, run, "compiled.txt", name + ".code.txt", kMaxCodeBytes);
  keep(side, run, "trace.json", name + ".trace.json", kMaxReportBytes);
  if (!done) {
    side.error = done.error();
  } else if (auto operators = parse_operators(run.answer)) {
    side.operators = std::move(*operators);
  } else {
    side.error = operators.error();
  }
  return side;
}

/// Runs the worker as the child of `argv`, which may be empty, and reads its answer. Error: one
/// sentence.
std::expected<void, std::string> Profiler::execute(Run& run, std::vector<std::string> argv) {
  if (!run.scratch) return std::unexpected("no temporary folder can be made");
  std::error_code error;
  fs::create_directory(run.request_folder(), error);
  fs::create_directory(run.out(), error);
  const auto request = run.request_folder() / "request.json";
  if (!build::write_file(request, run.request.dump(), 0644, false))
    return std::unexpected(fmt::format("cannot write {}", request.string()));

  const bool counts = !argv.empty();
  auto command =
      worker::torch_command({.python = environment_.python,
                             .package_folder = environment_.installation_root / "python",
                             .threads = judge::thread_count(options_),
                             .memory_bytes = options_.memory_bytes + (counts ? kNcuBytes : 0),
                             .needs = needs_});
  command.argv.insert(command.argv.end(), {"profile", request.string(), run.out().string()});
  if (counts) {
    argv.insert(argv.end(), command.argv.begin(), command.argv.end());
    command.argv = std::move(argv);
    for (const auto& folder : ncu_->folders) command.read_only.push_back({folder, "", true});
  }
  for (const auto& path : run.shown) command.read_only.push_back({path.string(), "", false});
  command.read_only.push_back({run.request_folder().string(), "", false});
  command.writable.push_back({run.out().string(), "", false});

  auto process = environment_.launcher.start(command);
  if (!process) return std::unexpected(process.error());
  const auto deadline = std::chrono::steady_clock::now() + options_.limits.evaluation;
  std::optional<sandbox::Exit> end;
  std::string why;
  while (!(end = process->wait(kGlance)) && why.empty()) {
    if (std::chrono::steady_clock::now() > deadline)
      why = fmt::format("profiling took over {} s (--timeout)",
                        options_.limits.evaluation.count() / 1000);
    const auto usage = build::measure_tree(run.out(), kMaxUsage);
    if (usage.bytes > kMaxUsage.bytes || usage.entries > kMaxUsage.entries)
      why = "the profiled process wrote over 1 GiB, or over 10 000 files";
  }
  process->kill();
  run.printed = process->output();
  if (!why.empty()) return std::unexpected(why);
  if (const auto folder = build::open_folder(run.out()))
    if (const auto file = build::open_beneath(folder->get(), kAnswer))
      if (const auto text = build::read_file(file->get(), kMaxAnswerBytes))
        run.answer = nlohmann::json::parse(*text, nullptr, false);
  if (!run.answer.is_object()) return std::unexpected(end_of(*end, run.printed));
  return {};
}

/// Prints the report in a sandbox of its own, and reads what that printed.
std::expected<std::vector<Launch>, std::string> Profiler::read_report(const fs::path& report) {
  const build::Scratch scratch;
  if (!scratch) return std::unexpected("no temporary folder can be made");
  const auto page = scratch.path() / "page.csv";
  sandbox::Command command;
  command.argv = page_command(*ncu_, report, page);
  command.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                         {"HOME", "/tmp"},
                         {"TMPDIR", "/tmp"},
                         {"LC_ALL", "C.UTF-8"}};
  for (const auto& folder : ncu_->folders) command.read_only.push_back({folder, "", true});
  command.read_only.push_back({report.string(), "", false});
  command.writable.push_back({scratch.path().string(), "", false});
  command.limits.memory_bytes = kPageBytes;
  auto process = environment_.launcher.start(command);
  if (!process) return std::unexpected(process.error());
  const auto end = process->wait(kPageLimit);
  process->kill();
  if (!end) return std::unexpected("Nsight Compute did not print its report in time");
  if (!end->exited || end->code != 0) return std::unexpected(end_of(*end, process->output()));
  const auto folder = build::open_folder(scratch.path());
  const auto file = folder ? build::open_beneath(folder->get(), page.filename())
                           : build::Io<build::FileDescriptor>(std::unexpected(folder.error()));
  const auto text = file ? build::read_file(file->get(), kMaxPageBytes)
                         : build::Io<std::string>(std::unexpected(file.error()));
  if (!text) return std::unexpected("what Nsight Compute printed is missing or too large");
  return parse_raw_page(*text, kMaxLaunches);
}

/// Copies a file that the worker may have left; where it left none, nothing happens.
void Profiler::keep(Side& side, const Run& run, const char* file, const std::string& as,
                    std::uint64_t max_bytes) {
  const auto folder = build::open_folder(run.out());
  if (!folder) return;
  const auto from = build::open_beneath(folder->get(), file);
  if (!from) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  const auto to = folder_ / as;
  fs::remove(to, error);
  if (build::copy_file(from->get(), to, 0644, max_bytes)) side.files.push_back(to);
}

}  // namespace kb::profile
