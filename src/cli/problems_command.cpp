// kernelbench problems list | show

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "card/card.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/judging.h"
#include "cli/problem_selection.h"
#include "examine/description.h"
#include "examine/speed_of_light.h"
#include "problem/problem.h"

namespace kb::cli {
namespace {

constexpr std::size_t kMaxTensorsShown = 24;

struct ListFlags {
  SelectionFlags selection;
  bool json = false, markdown = false;
};

// A table for docs/problems.md. The pipe is the one character of a cell that would end it.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

int list(const ListFlags& flags) {
  const Selection selection(flags.selection);
  auto rows = nlohmann::json::array();
  // Of a subset it says why each is there.
  const bool reasons = !flags.selection.subset.empty();
  if (flags.markdown)
    fmt::print("{}", reasons
                         ? "| id | name | family | why it is there |\n| --- | --- | --- | --- |\n"
                         : "| id | name | family | what it does | altered |\n"
                           "| --- | --- | --- | --- | --- |\n");
  for (const auto& entry : selection.catalog().entries()) {
    if (!selection.has(entry)) continue;
    const auto problem = value_or_usage_error(selection.catalog().load(entry.id));
    if (!selection.has(entry, problem)) continue;
    const auto reason = selection.reason(entry.id);
    if (flags.json) {
      nlohmann::json row = {{"id", entry.id.text()},      {"name", entry.name},
                            {"family", problem.family},   {"summary", problem.summary},
                            {"altered", problem.altered}, {"hash", problem.hash}};
      if (!reason.empty()) row["reason"] = reason;
      rows.push_back(std::move(row));
    } else if (flags.markdown) {
      fmt::print("| {} | {} | {} | {} |", entry.id.text(), cell(entry.name), problem.family,
                 cell(reasons ? reason : problem.summary));
      fmt::print("{}\n", reasons ? "" : fmt::format(" {} |", cell(problem.altered)));
    } else {
      fmt::print("{:<11} {:<44} {:<23} {}{}\n", entry.id.text(), entry.name, problem.family,
                 reason.empty() ? problem.summary : reason,
                 problem.altered.empty() ? "" : " (altered)");
    }
  }
  if (flags.json)
    fmt::print("{}\n", rows.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  return kOk;
}

struct ShowFlags {
  std::string problem, set;
  std::string size = "public";
  std::vector<std::string> assignments;
  std::string precision = "fp32";
  std::string gpu;
  std::string sandbox = "auto";
  std::string python;
  double timeout_s = 120;
  double memory_gb = 4;
  bool source = false, json = false;
};

std::string with_unit(double value, const char* unit) {
  static constexpr std::array kPrefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t i = 0;
  for (; value >= 1000 && i + 1 < kPrefixes.size(); ++i) value /= 1000;
  return fmt::format("{:.{}f} {}{}", value, i == 0 ? 0 : 2, kPrefixes[i], unit);
}

std::string shape_of(const TensorSpec& tensor) {
  return fmt::format("{:<8} [{}]", name_of(tensor.dtype), fmt::join(tensor.shape, ", "));
}

nlohmann::json json_of(const TensorSpec& tensor) {
  return {{"dtype", name_of(tensor.dtype)}, {"shape", tensor.shape}, {"bytes", tensor.bytes()}};
}

nlohmann::json json_of(const examine::Description& description) {
  const auto& spec = description.spec;
  nlohmann::json json = {{"size", description.size},
                         {"sizes", spec.sizes},
                         {"input_bytes", spec.input_bytes()},
                         {"weight_bytes", spec.param_bytes()},
                         {"output_bytes", spec.output_bytes()},
                         {"matrix_operations", description.matrix_operations},
                         {"other_operations", description.other_operations}};
  for (const char* list : {"inputs", "weights", "outputs"}) json[list] = nlohmann::json::array();
  for (const auto& input : spec.inputs)
    json["inputs"].push_back(input.tensor ? json_of(*input.tensor)
                                          : nlohmann::json{{"value", input.value}});
  for (const auto& param : spec.params) {
    auto one = json_of(param.tensor);
    one["name"] = param.name;
    one["buffer"] = param.buffer;
    json["weights"].push_back(std::move(one));
  }
  for (const auto& output : spec.outputs) json["outputs"].push_back(json_of(output));
  return json;
}

nlohmann::json json_of(const examine::SpeedOfLight& light, const card::Card& card) {
  return {{"gpu", card.name},
          {"speed_of_light_us", light.us()},
          {"memory_us", light.memory_us},
          {"tensor_us", light.tensor_us},
          {"vector_us", light.vector_us}};
}

// Comment lines, so that what is printed is still the problem's Python.
void print(const examine::Description& description) {
  const auto& spec = description.spec;
  fmt::print("#\n# size {} (sizes: public{}{})\n", description.size, spec.sizes.empty() ? "" : ", ",
             problem::printable(fmt::format("{}", fmt::join(spec.sizes, ", "))));
  for (std::size_t i = 0; i < spec.inputs.size(); ++i)
    fmt::print("#   input {:<3} {}\n", i,
               spec.inputs[i].tensor
                   ? shape_of(*spec.inputs[i].tensor)
                   : problem::printable(spec.inputs[i].value.dump(
                         -1, ' ', false, nlohmann::json::error_handler_t::replace)));
  for (std::size_t i = 0; i < std::min(spec.params.size(), kMaxTensorsShown); ++i)
    fmt::print("#   {}    {}  {}\n", spec.params[i].buffer ? "buffer" : "weight",
               shape_of(spec.params[i].tensor), problem::printable(spec.params[i].name));
  if (spec.params.size() > kMaxTensorsShown)
    fmt::print("#   and {} more (--json has all)\n", spec.params.size() - kMaxTensorsShown);
  for (std::size_t i = 0; i < spec.outputs.size(); ++i)
    fmt::print("#   output {:<2} {}\n", i, shape_of(spec.outputs[i]));
  fmt::print("# bytes: inputs {}, weights {}, outputs {}\n",
             with_unit(static_cast<double>(spec.input_bytes()), "B"),
             with_unit(static_cast<double>(spec.param_bytes()), "B"),
             with_unit(static_cast<double>(spec.output_bytes()), "B"));
  fmt::print("# operations: {} in matrix products and convolutions, about {} in the rest\n",
             with_unit(description.matrix_operations, "FLOP"),
             with_unit(description.other_operations, "FLOP"));
}

void print(const examine::SpeedOfLight& light, const card::Card& card,
           const std::string& precision) {
  fmt::print(
      "# speed of light on {}: {:.1f} µs, by {} (memory {:.1f}, arithmetic {:.1f} with tensor "
      "cores{}, {:.1f} "
      "without)\n",
      card.name, light.us(), light.memory_us >= light.tensor_us ? "memory" : "arithmetic",
      light.memory_us, light.tensor_us, precision == "fp32" ? " in TF32" : "", light.vector_us);
}

std::expected<examine::Description, std::string> describe(const problem::Problem& problem,
                                                          const ShowFlags& flags) {
  const auto root = problem::installation_root();
  auto python = worker::probe_python(worker::choose_python(flags.python, root));
  if (!python) return std::unexpected(python.error());
  const auto launcher = make_launcher({.sandbox = flags.sandbox, .python = flags.python});
  return examine::describe(
      {*launcher, std::move(*python), root / "python"}, problem,
      {.size = flags.size,
       .set = assignments(flags.assignments),
       .time_limit = std::chrono::milliseconds(static_cast<std::int64_t>(flags.timeout_s * 1000)),
       .memory_bytes = static_cast<std::uint64_t>(flags.memory_gb * 1e9)});
}

const card::Card* card_from(const std::string& name) {
  if (name.empty()) return nullptr;
  const auto* card = card::find(name);
  if (card == nullptr) {
    std::vector<std::string_view> keys;
    for (const auto& each : card::all()) keys.push_back(each.key);
    throw UsageError(
        fmt::format("there is no card '{}' in the table; it has {}", name, fmt::join(keys, ", ")));
  }
  return card;
}

int show(const ShowFlags& flags) {
  const auto* card = card_from(flags.gpu);
  const auto problem = value_or_usage_error(problem::find(flags.problem, flags.set));
  if (flags.source) {
    fmt::print("{}", problem.source);
    return kOk;
  }
  const auto description = describe(problem, flags);
  if (!description && (card != nullptr || flags.size != "public" || !flags.assignments.empty()))
    throw UsageError(description.error());  // it was asked for in so many words
  std::optional<examine::SpeedOfLight> light;
  if (card != nullptr) light = examine::speed_of_light(*description, *card, flags.precision);
  if (flags.json) {
    nlohmann::json json = {
        {"id", problem.id ? nlohmann::json(problem.id->text()) : nlohmann::json(nullptr)},
        {"name", problem.name},
        {"family", problem.family},
        {"summary", problem.summary},
        {"altered", problem.altered},
        {"path", problem.path.string()},
        {"hash", problem.hash},
        {"source", problem.source}};
    if (description)
      json.update(json_of(*description));
    else
      json["not_described"] = description.error();
    if (light) json.update(json_of(*light, *card));
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return kOk;
  }
  fmt::print("# {}  {}  ({})\n# {}\n# hash {}\n", problem.label, problem.name, problem.family,
             problem.path.string(), problem.hash);
  if (!problem.altered.empty()) fmt::print("# altered: {}\n", problem.altered);
  if (description)
    print(*description);
  else
    fmt::print("#\n# its shapes are not known: {}\n", description.error());
  if (light) print(*light, *card, flags.precision);
  fmt::print("\n{}", problem.source);
  return kOk;
}

}  // namespace

Command add_problems_list(CLI::App& problems) {
  auto flags = std::make_shared<ListFlags>();
  auto* app = problems.add_subcommand("list", "The problems of a set, one a line");
  add_selection_options(*app, flags->selection);
  app->add_flag("--json", flags->json, "print a JSON array");
  app->add_flag("--markdown", flags->markdown, "print a table for documentation")
      ->excludes("--json");
  app->footer("Example:  kernelbench problems list --level 1 --family matmul");
  return {app, [flags] { return list(*flags); }};
}

Command add_problems_show(CLI::App& problems) {
  auto flags = std::make_shared<ShowFlags>();
  auto* app = problems.add_subcommand(
      "show", "One problem: source, shapes, bytes, operations, and the speed of light on a card");
  app->add_option("problem", flags->problem,
                  "an id such as level1/19, SET:level1/19 of an imported set, or a problem file")
      ->required();
  add_set_option(*app, flags->set);
  app->add_option("--size", flags->size, "public, or a key of the problem's SIZES such as small")
      ->capture_default_str();
  app->add_option("--set", flags->assignments,
                  "replace a constant of the problem, after --size: NAME=VALUE (repeatable)");
  app->add_option("--gpu", flags->gpu, "a card for the speed of light, such as h200, a100 or 4090");
  app->add_option("--precision", flags->precision, "of inputs and weights, for the speed of light")
      ->check(CLI::IsMember({"fp32", "fp16", "bf16"}))
      ->capture_default_str();
  app->add_option("--timeout", flags->timeout_s, "seconds to find the shapes out")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--memory", flags->memory_gb, "GB that this may use")
      ->check(CLI::Range(0.25, 1e6))
      ->capture_default_str();
  add_sandbox_option(*app, flags->sandbox);
  add_python_option(*app, flags->python);
  app->add_flag("--source", flags->source, "print the source alone");
  app->add_flag("--json", flags->json, "print one JSON object");
  app->footer("Example:  kernelbench problems show level1/19 --gpu h200");
  return {app, [flags] { return show(*flags); }};
}

}  // namespace kb::cli
