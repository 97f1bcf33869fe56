// kernelbench profile PROBLEM CANDIDATE: why is it as fast as it is?

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "check/check.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/judging.h"
#include "cli/problem_selection.h"
#include "cli/profiling.h"
#include "cli/progress.h"
#include "cli/summary.h"
#include "judge/building.h"
#include "profile/words.h"

namespace kb::cli {
namespace {

struct ProfileFlags {
  JudgingFlags judging;
  std::string problem, set, candidate, keep;
  bool reference = false;
  bool json = false;
};

problem::Candidate candidate_of(const ProfileFlags& flags) {
  auto candidate = value_or_usage_error(load_candidate(flags.judging, flags.candidate));
  if (const auto missing = check::has_entry_point(candidate))
    throw UsageError(fmt::format("{}: {}", flags.candidate, *missing));
  return candidate;
}

/// UsageError where the machine cannot build; a build that failed is returned.
build::Result build_of(const Workshop& workshop, const problem::Problem& problem,
                       const problem::Candidate& candidate, const Device& device) {
  const auto& environment = workshop.environment();
  return value_or_usage_error(
      judge::build_candidate(environment.builder,
                             {environment.python, environment.installation_root,
                              device.describe().value("architecture", std::string())},
                             problem, candidate));
}

nlohmann::json json_of(const problem::Problem& problem, const problem::Candidate* candidate,
                       const judge::Options& options) {
  nlohmann::json json = {{"problem", problem.label},
                         {"device", options.device},
                         {"precision", options.precision},
                         {"size", options.size}};
  if (candidate != nullptr) {
    json["candidate"] = candidate->path.filename().string();
    json["backend"] = problem::name_of(candidate->language);
  }
  return json;
}

void print_json(const nlohmann::json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

int profile(const ProfileFlags& flags) {
  const auto problem = value_or_usage_error(problem::find(flags.problem, flags.set));
  if (flags.candidate.empty() != flags.reference)
    throw UsageError(flags.reference
                         ? "profile takes a candidate, or --reference for PyTorch's side alone; "
                           "with a candidate the reference is profiled anyway"
                         : "profile takes a candidate's file, or --reference");
  std::optional<problem::Candidate> candidate;
  if (!flags.reference) candidate = candidate_of(flags);
  const auto devices = devices_of(flags.judging);
  if (devices.size() > 1) throw UsageError("profile uses one device; --device lists several");
  const auto name = device_for(candidate ? candidate->language : problem::Language::torch, devices);
  if (candidate)
    if (const auto refused =
            problem::refused_precision(candidate->language, flags.judging.precision, name == "cpu"))
      throw UsageError(*refused);
  const auto options = options_from(flags.judging, name);
  const auto device = value_or_usage_error(judge::open_device(name));
  const Workshop workshop(flags.judging);
  const auto* const who = candidate ? &*candidate : nullptr;
  profile::Profiler profiler(workshop.environment(), options, *device,
                             profile_folder(flags.judging, flags.keep, problem, who));
  {
    Progress progress("done", flags.json ? 0 : 1);
    if (candidate) {
      progress.working_on("compile");
      const auto build = build_of(workshop, problem, *candidate, *device);
      if (build.status != build::Status::ok)
        throw UsageError(
            fmt::format("{} does not compile or load, so there is nothing to profile: {}",
                        flags.candidate, telling_line(build.log)));
      progress.working_on("candidate");
      profiler.candidate(problem, *candidate, build);
    }
    progress.working_on("reference");
    profiler.reference(problem);
    if (flags.reference) {
      progress.working_on("torch.compile");
      profiler.compiled(problem);
    }
  }
  const auto& profiled = profiler.profile();
  if (flags.json) {
    auto json = json_of(problem, who, options);
    json["profile"] = profile::to_json(profiled);
    print_json(json);
  } else {
    fmt::print("{}  {}  ({}, {}, size {})\n{}", problem.label,
               who != nullptr ? printable(who->path.filename().string(), false) : "PyTorch",
               options.device, options.precision, options.size, profile::in_words(profiled));
  }
  const bool failed = std::ranges::any_of(
      profiled.sides, [](const profile::Side& side) { return !side.error.empty(); });
  return failed ? kFindings : kOk;
}

}  // namespace

Command add_profile(CLI::App& root) {
  auto flags = std::make_shared<ProfileFlags>();
  auto* app = root.add_subcommand(
      "profile", "What bounds a kernel: hardware counters beside those of PyTorch's kernels");
  app->add_option("problem", flags->problem,
                  "an id such as level1/19, SET:level1/19 of an imported set, or a problem file")
      ->required();
  app->add_option("candidate", flags->candidate,
                  "the kernel: .cu, .hip, .cpp, or .py with a class ModelNew");
  add_set_option(*app, flags->set);
  app->add_flag("--reference", flags->reference,
                "PyTorch's side alone, as it is and through torch.compile, with the code and the "
                "trace of that");
  app->add_option("--keep", flags->keep,
                  "folder for reports, traces and generated code; default: below the build cache");
  app->add_flag("--json", flags->json, "print one JSON object");
  add_model_options(*app, flags->judging);
  app->footer(
      "Needs Nsight Compute (ncu) and the permission to read counters; without, it falls back to\n"
      "PyTorch's profiler. A profile explains a time, and is no evidence: see docs/profile.md.\n"
      "Example:  kernelbench profile level1/23 "
      "examples/run_gpu/level_1_problem_23_sample_1_kernel.cu");
  return {app, [flags] { return profile(*flags); }};
}

}  // namespace kb::cli
