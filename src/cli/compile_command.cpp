// kernelbench compile DIR: builds every sample of a folder ahead, into the build cache.
//
// Needs no device: a cache that was filled here serves a machine with a GPU, also one without nvcc.
// Every error is collected; one sample that does not compile keeps no other from being built.

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "build/hip.h"
#include "build/nvcc.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/judging.h"
#include "cli/progress.h"
#include "cli/samples.h"
#include "cli/summary.h"
#include "device/cuda/cuda.h"
#include "judge/building.h"
#include "problem/native_source.h"
#include "problem/problem.h"
#include "worker/python_environment.h"

namespace kb::cli {
namespace {

struct CompileFlags {
  JudgingFlags judging;
  SampleFlags samples;
  std::string architecture;
  bool json = false;
};

/// One sample and what became of it.
struct Row {
  problem::Sample sample;
  std::optional<problem::Problem> problem;
  std::optional<problem::Candidate> candidate;
  std::string status;  ///< "ok", a failure, "left_out" (cannot be judged) or "error" (our own)
  std::string log;
  bool cached = false;
  double ms = 0;
};

std::vector<Row> load(const SampleFlags& flags) {
  const auto catalog = open_set(flags);
  std::vector<Row> rows;
  for (const auto& sample : select_samples(flags)) {
    Row row{sample, {}, {}, "left_out", {}, false, 0};
    auto problem = catalog.load(sample.id);
    auto candidate = problem::load_candidate(sample.path);
    if (!problem)
      row.log = problem.error();
    else if (!candidate)
      row.log = candidate.error();
    else {
      row.problem = std::move(*problem);
      row.candidate = std::move(*candidate);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

bool any_of(const std::vector<Row>& rows, problem::Backend backend) {
  return std::ranges::any_of(
      rows, [&](const Row& row) { return row.candidate && row.candidate->backend == backend; });
}

bool any_includes_tvm_ffi(const std::vector<Row>& rows) {
  return std::ranges::any_of(rows, [](const Row& row) {
    return row.candidate && row.candidate->backend != problem::Backend::python &&
           problem::includes_tvm_ffi(row.candidate->source);
  });
}

judge::BuildTarget target_for(const std::vector<Row>& rows, const CompileFlags& flags) {
  judge::BuildTarget target;
  target.installation_root = problem::installation_root();
  target.architecture = flags.architecture.empty() ? cuda::architecture(0) : flags.architecture;
  const bool cuda = any_of(rows, problem::Backend::cuda_cpp);
  const bool hip = any_of(rows, problem::Backend::hip);
  if (target.architecture.empty() && (cuda || hip))
    throw UsageError(
        fmt::format("{} holds {} samples ({}), and this machine has no GPU to compile them for: "
                    "name the architecture, as in --arch {}",
                    flags.samples.folder, cuda ? "CUDA" : "HIP", cuda ? ".cu" : ".hip",
                    cuda ? "sm_90" : "gfx942 (AMD) or sm_90 (NVIDIA)"));
  if (cuda && build::is_amd_architecture(target.architecture))
    throw UsageError(
        fmt::format("{} holds CUDA samples (.cu), which are not for AMD GPUs: give an architecture "
                    "such as sm_90 instead of {}, or choose others with --ids",
                    flags.samples.folder, target.architecture));
  if (any_of(rows, problem::Backend::python) || any_includes_tvm_ffi(rows))
    target.python = value_or_usage_error(worker::probe_python(
        worker::choose_python(flags.judging.python, target.installation_root)));
  return target;
}

std::string_view name_of(build::Status status) {
  switch (status) {
    case build::Status::ok: return "ok";
    case build::Status::compile_error: return "compile_error";
    case build::Status::load_error: return "load_error";
    case build::Status::timeout: return "timeout";
  }
  return "error";
}

void build_all(std::vector<Row>& rows, build::Builder& builder, const judge::BuildTarget& target,
               const CompileFlags& flags) {
  std::vector<Row*> to_build;
  for (auto& row : rows)
    if (row.candidate) to_build.push_back(&row);
  Progress progress("compiled", flags.json ? 0 : to_build.size());
  std::mutex mutex;
  in_parallel(to_build.size(), flags.samples.jobs, [&](std::size_t i) {
    Row& row = *to_build[i];
    auto built = judge::build_candidate(builder, target, *row.problem, *row.candidate);
    row.status = built ? name_of(built->status) : "error";
    row.log = built ? built->log : built.error();
    row.cached = built && built->cached;
    row.ms = built ? built->build_ms : 0;
    const std::scoped_lock lock(mutex);
    progress.done("");
  });
}

std::string backend_of(const Row& row) {
  return row.candidate ? std::string(problem::name_of(row.candidate->language)) : "-";
}

void print_json(const std::vector<Row>& rows, const judge::BuildTarget& target) {
  auto samples = nlohmann::json::array();
  for (const auto& row : rows)
    samples.push_back({{"problem", row.sample.id.text()},
                       {"sample", row.sample.sample},
                       {"file", row.sample.path.filename().string()},
                       {"backend", backend_of(row)},
                       {"status", row.status},
                       {"cached", row.cached},
                       {"build_ms", row.ms},
                       {"log", row.log}});
  const nlohmann::json json = {{"architecture", target.architecture},
                               {"samples", std::move(samples)}};
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_table(const std::vector<Row>& rows) {
  for (const auto& row : rows) {
    const bool ok = row.status == "ok";
    fmt::print("{:<20} {:<14} {:<13} {:>8} {}\n", label_of(row.sample), backend_of(row),
               ok && row.cached ? "cached" : row.status,
               row.cached ? "" : fmt::format("{:.0f} ms", row.ms),
               ok ? "" : " " + telling_line(row.log));
  }
}

int compile(const CompileFlags& flags) {
  if (!flags.architecture.empty() && !build::is_architecture(flags.architecture) &&
      !build::is_amd_architecture(flags.architecture))
    throw UsageError(fmt::format(
        "--arch takes a GPU architecture such as sm_90 or gfx942, not '{}'", flags.architecture));
  auto rows = load(flags.samples);
  const auto target = target_for(rows, flags);
  const auto launcher = make_launcher(flags.judging);
  const auto builder = make_builder(flags.judging, *launcher);
  build_all(rows, *builder, target, flags);

  const auto count = [&](auto wanted) { return std::ranges::count_if(rows, wanted); };
  const auto good = count([](const Row& row) { return row.status == "ok"; });
  if (flags.json) {
    print_json(rows, target);
  } else {
    print_table(rows);
    fmt::print("{} of {} samples are compiled, {} of them by an earlier run\n", good, rows.size(),
               count([](const Row& row) { return row.status == "ok" && row.cached; }));
  }
  const auto broken = std::ranges::find(rows, "error", &Row::status);
  if (broken != rows.end()) throw UsageError(broken->log);
  return good == static_cast<std::ptrdiff_t>(rows.size()) ? kOk : kFindings;
}

}  // namespace

Command add_compile(CLI::App& root) {
  auto flags = std::make_shared<CompileFlags>();
  auto* app = root.add_subcommand(
      "compile", "Compile a folder of samples ahead, also on a machine without a GPU");
  add_sample_options(*app, flags->samples);
  app->add_option("--arch", flags->architecture,
                  "the GPU architecture for .cu and .hip samples, e.g. sm_90, or for .hip gfx942; "
                  "default this machine's");
  app->add_flag("--json", flags->json, "print one JSON object, with every compiler's words");
  add_build_options(*app, flags->judging);
  app->footer(
      "`run` finds what was compiled in the same cache folder.\n"
      "Example:  kernelbench compile examples/run_gpu --arch sm_90");
  return {app, [flags] { return compile(*flags); }};
}

}  // namespace kb::cli
