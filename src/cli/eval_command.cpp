// kernelbench eval PROBLEM CANDIDATE

#include <fmt/format.h>

#include <optional>

#include "check/check.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/judging.h"
#include "cli/problem_selection.h"
#include "cli/profiling.h"
#include "cli/progress.h"
#include "cli/summary.h"
#include "problem/problem.h"
#include "profile/words.h"

namespace kb::cli {
namespace {

struct EvalFlags {
  JudgingFlags judging;
  std::string problem, set, candidate;
  bool json = false;
  bool profile = false;
};

void print_json(const nlohmann::json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

// A file that can be no candidate is a person's mistake; a program is told the verdict.
int refuse(const EvalFlags& flags, const problem::Problem& problem,
           const problem::Candidate& candidate, const std::string& why) {
  if (!flags.json) throw UsageError(why);
  print_json(refusal_json(
      problem, candidate, why,
      options_from(flags.judging, device_for(candidate.language, devices_of(flags.judging)))));
  return kOk;
}

// After the verdict, in processes of its own: nothing of it reaches a time.
profile::Profile profile_of(const EvalFlags& flags, const judge::Environment& environment,
                            const judge::Options& options, const problem::Problem& problem,
                            const problem::Candidate& candidate, const build::Result& build) {
  const auto device = value_or_usage_error(judge::open_device(options.device));
  profile::Profiler profiler(environment, options, *device,
                             profile_folder(flags.judging, {}, problem, &candidate));
  profiler.candidate(problem, candidate, build);
  profiler.reference(problem);
  return profiler.profile();
}

int eval(const EvalFlags& flags) {
  const auto problem = value_or_usage_error(problem::find(flags.problem, flags.set));
  const auto loaded = load_candidate(flags.judging, flags.candidate);
  if (!loaded)
    return refuse(flags, problem, problem::Candidate{.path = flags.candidate}, loaded.error());
  const auto& candidate = *loaded;
  if (const auto missing = check::has_entry_point(candidate))
    return refuse(flags, problem, candidate, fmt::format("{}: {}", flags.candidate, *missing));
  const auto devices = devices_of(flags.judging);
  if (devices.size() > 1) throw UsageError("eval judges on one device; --device lists several");
  const auto name = device_for(candidate.language, devices);
  if (const auto refused =
          problem::refused_precision(candidate.language, flags.judging.precision, name == "cpu"))
    throw UsageError(*refused);
  const auto options = options_from(flags.judging, name);
  auto device = value_or_usage_error(judge::open_device(options.device));
  Workshop workshop(flags.judging);
  std::optional<judge::Evaluator> evaluator;
  evaluator.emplace(workshop.environment(), options, std::move(device));
  // The imports of torch run while the candidate compiles.
  evaluator->warm_up(candidate.backend);
  const auto build = evaluator->build(problem, candidate);
  if (!build) throw UsageError(build.error().message);
  std::optional<judge::Result> result;
  std::optional<profile::Profile> profiled;
  {
    Progress progress("done", flags.json ? 0 : 1);
    auto judged = evaluator->evaluate(problem, candidate, *build,
                                      [&](const char* phase) { progress.working_on(phase); });
    if (!judged) throw UsageError(judged.error().message);
    result = std::move(*judged);
    evaluator.reset();  // its workers and its memory
    if (flags.profile && build->status == build::Status::ok) {
      progress.working_on("profile");
      profiled = profile_of(flags, workshop.environment(), options, problem, candidate, *build);
    }
  }
  auto json = judge::to_json(*result, options);
  if (profiled) json["profile"] = profile::to_json(*profiled);
  if (flags.json)
    print_json(json);
  else
    fmt::print("{}{}", in_full(*result, options),
               profiled ? '\n' + profile::in_words(*profiled) : std::string());
  return result->verdict == judge::Verdict::infrastructure_error ? kFindings : kOk;
}

}  // namespace

Command add_eval(CLI::App& root) {
  auto flags = std::make_shared<EvalFlags>();
  auto* app = root.add_subcommand("eval", "Judge one kernel against its PyTorch reference");
  app->add_option("problem", flags->problem,
                  "an id such as level1/19, SET:level1/19 of an imported set, or a problem file")
      ->required();
  app->add_option("candidate", flags->candidate,
                  "the kernel: .cu, .hip, .cpp, or .py with a class ModelNew")
      ->required();
  add_set_option(*app, flags->set);
  app->add_flag("--json", flags->json, "print one JSON object");
  app->add_flag("--profile", flags->profile,
                "then profile it beside the reference, as `kernelbench profile` does");
  add_judging_options(*app, flags->judging);
  app->footer(
      "Example:  kernelbench eval level1/19 "
      "examples/run_cpu/level_1_problem_19_sample_0_kernel.cpp --size small");
  return {app, [flags] { return eval(*flags); }};
}

}  // namespace kb::cli
