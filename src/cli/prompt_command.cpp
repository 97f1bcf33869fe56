// kernelbench prompt PROBLEM

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "card/card.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "problem/problem.h"
#include "problem/text_file.h"
#include "prompt/prompt.h"

namespace kb::cli {
namespace {

struct PromptFlags {
  std::string problem;
  std::string backend = "cuda", precision = "fp32", shots = "one", gpu = "none", size = "public";
  std::string prompts, result, candidate;
  bool with_hardware = false, json = false;
};

const card::Card* card_from(const std::string& name) {
  if (name == "none") return nullptr;
  if (const auto* card = card::find(name)) return card;
  std::string known;
  for (const auto& card : card::all()) known += fmt::format("{}, ", card.key);
  throw UsageError(
      fmt::format("there is no GPU '{}'; give {}or none", problem::printable(name), known));
}

prompt::Request request_from(const PromptFlags& flags) {
  const auto shots = prompt::parse_shots(flags.shots);
  if (!shots)
    throw UsageError(
        fmt::format("--shots is zero, one or few, not '{}'", problem::printable(flags.shots)));
  prompt::Request request{.backend = flags.backend,
                          .precision = flags.precision,
                          .shots = *shots,
                          .gpu = card_from(flags.gpu),
                          .with_hardware = flags.with_hardware,
                          .size = flags.size};
  if (const auto language = problem::language_named(flags.backend))
    if (const auto refused = problem::refused_precision(*language, flags.precision, false))
      throw UsageError(*refused);
  if (flags.with_hardware && !request.gpu)
    throw UsageError("--with-hardware needs a card to describe: add --gpu NAME");
  return request;
}

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
  const auto library =
      value_or_usage_error(prompt::Library::load(problem::installation_root(), flags.prompts));
  const auto request = request_from(flags);
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
                                      {"shots", flags.shots},
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
  app->add_option("--backend", flags->backend,
                  "cpp, cuda_cpp, cuda, triton, cute, tilelang, thunderkittens, cupy, hip, helion, "
                  "cuda_tile, or one of your --prompts file")
      ->capture_default_str();
  app->add_option("--precision", flags->precision, "fp32, fp16 or bf16")->capture_default_str();
  app->add_option("--shots", flags->shots, "zero, one or few worked examples")
      ->capture_default_str();
  app->add_option("--gpu", flags->gpu, "the card to write for, e.g. h200, or none")
      ->capture_default_str();
  app->add_flag("--with-hardware", flags->with_hardware,
                "describe the card: figures, terms, good practice");
  app->add_option("--size", flags->size, "public, or a key of the problem's SIZES")
      ->capture_default_str();
  app->add_option("--prompts", flags->prompts,
                  "a file of texts that replace ours (docs/prompts.md)");
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
