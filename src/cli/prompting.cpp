#include "cli/prompting.h"

#include <fmt/format.h>

#include "card/card.h"
#include "cli/failure.h"
#include "problem/installation.h"
#include "problem/language.h"
#include "problem/text_file.h"

namespace kb::cli {
namespace {

const card::Card* card_from(const std::string& name) {
  if (name == "none") return nullptr;
  if (const auto* card = card::find(name)) return card;
  std::string known;
  for (const auto& card : card::all()) known += fmt::format("{}, ", card.key);
  throw UsageError(
      fmt::format("there is no GPU '{}'; give {}or none", problem::printable(name), known));
}

}  // namespace

void add_style_options(CLI::App& app, PromptingFlags& flags) {
  app.add_option("--shots", flags.shots, "zero, one or few worked examples")->capture_default_str();
  app.add_option("--gpu", flags.gpu, "the card to write for, e.g. h200, or none")
      ->capture_default_str();
  app.add_flag("--with-hardware", flags.with_hardware,
               "describe the card: figures, terms, good practice");
  app.add_option("--prompts", flags.prompts, "a file of texts that replace ours (docs/prompts.md)");
}

void add_prompting_options(CLI::App& app, PromptingFlags& flags) {
  app.add_option("--backend", flags.backend, kBackends)->capture_default_str();
  app.add_option("--precision", flags.precision, "fp32, fp16 or bf16")->capture_default_str();
  app.add_option("--size", flags.size, "public, or a key of the problem's SIZES")
      ->capture_default_str();
  add_style_options(app, flags);
}

prompt::Library load_library(const PromptingFlags& flags) {
  return value_or_usage_error(prompt::Library::load(problem::installation_root(), flags.prompts));
}

const prompt::Backend& backend_named(const prompt::Library& library, const std::string& name) {
  if (const auto* backend = library.backend(name)) return *backend;
  throw UsageError(fmt::format("there is no backend '{}' (see kernelbench prompt --help)",
                               problem::printable(name)));
}

nlohmann::json configuration_of(const prompt::Request& request) {
  return {{"backend", request.backend},
          {"precision", request.precision},
          {"shots", prompt::name_of(request.shots)},
          {"gpu", request.gpu ? nlohmann::json(request.gpu->key) : nlohmann::json(nullptr)},
          {"with_hardware", request.with_hardware},
          {"size", request.size}};
}

prompt::Request request_from(const PromptingFlags& flags) {
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

}  // namespace kb::cli
