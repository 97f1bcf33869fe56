// kernelbench prompt PROBLEM

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/prompting.h"
#include "problem/problem.h"
#include "problem/text_file.h"
#include "prompt/prompt.h"

namespace kb::cli {
namespace {

struct PromptFlags {
  std::string problem;
  PromptingFlags prompting;
  std::string result, candidate;
  bool json = false;
};

/// The message that follows on a judgement.
std::string refinement(const PromptFlags& flags, const prompt::Library& library,
                       const prompt::Request& request) {
  const auto text = value_or_usage_error(problem::read_text_file(flags.result));
  const auto result = nlohmann::json::parse(text, nullptr, false);
  if (result.is_discarded())
    throw UsageError(fmt::format("{} is not JSON", problem::printable(flags.result)));
  const auto code = value_or_usage_error(problem::read_text_file(flags.candidate));
  const auto message = library.refine(request, result, code);
  if (!message)
    throw UsageError(fmt::format("{}: {}", problem::printable(flags.result), message.error()));
  return *message;
}

int show(const PromptFlags& flags) {
  if (flags.result.empty() != flags.candidate.empty())
    throw UsageError(
        "--result and --candidate go together: a judgement and the kernel that it is of");
  const auto problem = value_or_usage_error(problem::find(flags.problem));
  const auto library = load_library(flags.prompting);
  const auto request = request_from(flags.prompting);
  const auto prompt = value_or_usage_error(library.render(problem, request));
  const std::string next =
      flags.result.empty() ? std::string() : refinement(flags, library, request);
  const std::size_t tokens = prompt.estimated_tokens + prompt::estimate_tokens(next);
  if (flags.json) {
    auto messages = nlohmann::json::array({{{"role", "system"}, {"content", prompt.system}},
                                           {{"role", "user"}, {"content", prompt.user}}});
    if (!next.empty()) messages.push_back({{"role", "user"}, {"content", next}});
    fmt::print("{}\n", nlohmann::json{{"problem", problem.label},
                                      {"backend", request.backend},
                                      {"precision", request.precision},
                                      {"shots", flags.prompting.shots},
                                      {"examples", prompt.examples},
                                      {"gpu", request.gpu ? nlohmann::json(request.gpu->key)
                                                          : nlohmann::json(nullptr)},
                                      {"size", request.size},
                                      {"messages", messages},
                                      {"estimated_tokens", tokens}}
                           .dump(2));
    return kOk;
  }
  fmt::print("==== system ====\n{}\n==== user ====\n{}\n", prompt.system, prompt.user);
  if (!next.empty()) fmt::print("==== user, after the answer ====\n{}\n", next);
  fmt::print(stderr, "about {} tokens\n", tokens);
  return kOk;
}

}  // namespace

Command add_prompt(CLI::App& root) {
  auto flags = std::make_shared<PromptFlags>();
  auto* app = root.add_subcommand("prompt", "Print what a language model would be sent");
  app->add_option("problem", flags->problem, "an id such as level1/19, or a problem file")
      ->required();
  add_prompting_options(*app, flags->prompting);
  app->add_option("--result", flags->result,
                  "what `eval --json` printed: adds the message that gives it back to the model");
  app->add_option("--candidate", flags->candidate, "with --result: the kernel that was judged");
  app->add_flag("--json", flags->json, "print one JSON object");
  app->footer(
      "Example:  kernelbench prompt level1/23 --backend triton --gpu h200 --with-hardware\n"
      "The estimate of tokens goes to stderr.");
  return {app, [flags] { return show(*flags); }};
}

}  // namespace kb::cli
