#include "score/backends.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "measure/statistics.h"
#include "problem/language.h"
#include "problem/sample.h"
#include "problem/text_file.h"
#include "score/run.h"
#include "store/store.h"

namespace kb::score {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::array<std::string_view, 3> kPrecisions = {"fp32", "fp16", "bf16"};
constexpr std::string_view kTvmFfi = "tvm_ffi";
// Of a stranger's words in a cell: a sentence, not a log.
constexpr std::size_t kMaxMessage = 120;
constexpr std::size_t kMaxReason = 240;

// The phases that a reader waits for, as they are called in results and here.
constexpr std::array<std::pair<const char*, const char*>, 4> kPhases = {
    {{"compile", "compile"}, {"load", "load"}, {"first_call", "first call"}, {"timing", "timing"}}};

std::string shown(const fs::path& path) {
  return problem::printable(path.string());
}

std::size_t precision_rank(std::string_view precision) {
  return static_cast<std::size_t>(std::ranges::find(kPrecisions, precision) - kPrecisions.begin());
}

// Languages in the order of their enumeration, TVM-FFI behind them, then anything else.
std::size_t backend_rank(std::string_view backend) {
  const auto all = problem::all_languages();
  const auto language = problem::language_named(backend);
  if (!language) return backend == kTvmFfi ? all.size() : all.size() + 1;
  return static_cast<std::size_t>(std::ranges::find(all, *language) - all.begin());
}

struct BackendLess {
  bool operator()(const std::string& a, const std::string& b) const {
    return std::pair(backend_rank(a), std::string_view(a)) <
           std::pair(backend_rank(b), std::string_view(b));
  }
};

std::string string_in(const Json& object, const char* name) {
  const auto it = object.is_object() ? object.find(name) : object.end();
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::optional<double> number_in(const Json& object, const char* name) {
  const auto it = object.is_object() ? object.find(name) : object.end();
  if (it == object.end() || !it->is_number()) return std::nullopt;
  const double value = it->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::map<std::string, std::string> strings_in(const Json& object, const char* name) {
  std::map<std::string, std::string> strings;
  const auto it = object.is_object() ? object.find(name) : object.end();
  if (it == object.end() || !it->is_object()) return strings;
  for (const auto& [key, value] : it->items())
    if (value.is_string()) strings[key] = value.get<std::string>();
  return strings;
}

std::expected<Judgement, std::string> parse_judgement(const std::string& text) {
  auto evaluation = parse_evaluation(text);
  if (!evaluation) return std::unexpected(evaluation.error());
  const Json json = Json::parse(text);
  Judgement judgement{.evaluation = std::move(*evaluation),
                      .candidate = string_in(json, "candidate"),
                      .precision = string_in(json, "precision"),
                      .size = string_in(json, "size"),
                      .device = string_in(json, "device"),
                      .card = string_in(json.value("device_info", Json()), "name"),
                      .phases_ms = {},
                      .message = string_in(json, "message")};
  const Json phases = json.value("phases_ms", Json());
  if (phases.is_object())
    for (const auto& [name, value] : phases.items())
      if (const auto ms = number_in(phases, name.c_str())) judgement.phases_ms[name] = *ms;
  return judgement;
}

using Judgements = std::map<std::pair<std::string, int>, Judgement>;

// What `run` has left in a folder; empty where it has left nothing.
std::expected<Judgements, std::string> load_judgements(const fs::path& folder) {
  Judgements judgements;
  const fs::path file = folder / "kernelbench.db";
  std::error_code error;
  if (!fs::exists(file, error)) return judgements;  // opening would make one
  auto store = store::Store::open(file);
  if (!store) return std::unexpected(store.error());
  const auto rows = store->rows();
  if (!rows) return std::unexpected(rows.error());
  for (const auto& row : *rows) {
    auto judgement = parse_judgement(row.result_json);
    if (!judgement)
      return std::unexpected(
          fmt::format("{}: a result is damaged ({})", shown(file), judgement.error()));
    judgements.insert_or_assign({row.key.problem, row.key.sample}, std::move(*judgement));
  }
  return judgements;
}

std::string reason_in(const fs::path& folder) {
  const auto file = folder / "not_run";
  std::error_code error;
  if (!fs::exists(file, error)) return "it was not selected";
  const auto text = problem::read_text_file(file);
  const std::string line = text ? text->substr(0, text->find('\n')) : text.error();
  return line.empty() ? "it was not selected" : line;
}

std::expected<void, std::string> add_folder(const fs::path& folder, const std::string& backend,
                                            const std::string& precision,
                                            std::vector<Example>& examples) {
  auto first = load_judgements(folder);
  if (!first) return std::unexpected(first.error());
  auto again = load_judgements(folder / "again");
  if (!again) return std::unexpected(again.error());
  std::set<std::pair<std::string, int>> samples;
  for (const auto& [key, judgement] : *first) samples.insert(key);
  if (const auto files = problem::find_samples(folder))
    for (const auto& sample : *files) samples.emplace(sample.id.text(), sample.sample);
  for (const auto& key : samples) {
    Example example{.backend = backend,
                    .precision = precision,
                    .problem = key.first,
                    .sample = key.second,
                    .first = {},
                    .again = {},
                    .not_run = {},
                    .ncu_us = {}};
    if (const auto it = first->find(key); it == first->end())
      example.not_run = reason_in(folder);
    else if (!it->second.evaluation.counts)
      example.not_run = it->second.message.empty() ? "the judge failed" : it->second.message;
    else
      example.first = it->second;
    if (const auto it = again->find(key); it != again->end() && it->second.evaluation.counts)
      example.again = it->second;
    examples.push_back(std::move(example));
  }
  return {};
}

std::expected<Json, std::string> read_json(const fs::path& file) {
  const auto text = read_results_file(file);
  if (!text) return std::unexpected(text.error());
  auto json = Json::parse(*text, nullptr, false);
  if (!json.is_object())
    return std::unexpected(fmt::format("{} is no JSON object: make it again", shown(file)));
  return json;
}

std::expected<void, std::string> add_readiness(const fs::path& file, Showcase& showcase) {
  constexpr std::string_view kBackend = " backend";
  std::error_code error;
  if (!fs::exists(file, error)) return {};
  const auto json = read_json(file);
  if (!json) return std::unexpected(json.error());
  for (const Json& finding : json->value("findings", Json::array())) {
    std::string what = string_in(finding, "what");
    auto versions = strings_in(finding, "versions");
    if (what == "python" || what == "cuda toolkit") showcase.versions.merge(versions);
    if (what == "TVM-FFI") what = fmt::format("{}{}", kTvmFfi, kBackend);
    if (!what.ends_with(kBackend)) continue;
    what.resize(what.size() - kBackend.size());
    showcase.readiness[what] = {string_in(finding, "state") == "ok", string_in(finding, "detail"),
                                std::move(versions)};
  }
  return {};
}

std::expected<void, std::string> add_profile(const fs::path& file, std::vector<Example>& examples) {
  const auto json = read_json(file);
  if (!json) return std::unexpected(json.error());
  const auto duration = number_in(json->value("profile", Json::object()), "candidate_duration_us");
  if (!duration) return {};  // without counters
  for (auto& example : examples)
    if (example.first && example.problem == string_in(*json, "problem") &&
        example.first->candidate == string_in(*json, "candidate") &&
        example.first->evaluation.backend == string_in(*json, "backend") &&
        example.precision == string_in(*json, "precision") &&
        example.first->size == string_in(*json, "size"))
      example.ncu_us = duration;
  return {};
}

std::string name_of(const Example& example) {
  return example.sample == 0 ? example.problem
                             : fmt::format("{} sample {}", example.problem, example.sample);
}

std::string versions_text(const std::map<std::string, std::string>& versions) {
  std::string text;
  for (const auto& [name, version] : versions)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, version);
  return text.empty() ? "-" : text;
}

std::string verdict_text(const Judgement& judgement) {
  const Evaluation& evaluation = judgement.evaluation;
  std::string text = evaluation.verdict;
  if (!evaluation.correct)
    return judgement.message.empty()
               ? text
               : text + ": " +
                     clean(judgement.message.substr(0, judgement.message.find('\n')), kMaxMessage);
  if (evaluation.speedup) text += " " + factor_text(*evaluation.speedup);
  if (evaluation.has_interval())
    text += fmt::format(" [{:.2f}, {:.2f}]", *evaluation.ci_low, *evaluation.ci_high);
  if (!evaluation.flags.empty()) text += fmt::format(" ({})", fmt::join(evaluation.flags, ", "));
  return text;
}

/// "NVIDIA H200, small".
std::string conditions_of(const Judgement& judgement) {
  return fmt::format("{}, size {}", judgement.card.empty() ? judgement.device : judgement.card,
                     judgement.size);
}

// Every backend that there is, and those of the folders.
std::set<std::string, BackendLess> backends_of(const Showcase& showcase) {
  std::set<std::string, BackendLess> backends = {std::string(kTvmFfi)};
  for (const auto language : problem::all_languages()) backends.emplace(problem::name_of(language));
  for (const auto& example : showcase.examples) backends.insert(example.backend);
  return backends;
}

// "fp32, fp16: 2 of 3: stopped after 60 s; bf16: …"; of a backend without examples why it has none.
std::string not_run_text(const Showcase& showcase, const std::string& backend) {
  std::map<std::size_t, std::size_t> attempted;                       // by precision
  std::map<std::size_t, std::map<std::string, std::size_t>> missing;  // and by reason
  for (const auto& example : showcase.examples) {
    if (example.backend != backend) continue;
    const std::size_t rank = precision_rank(example.precision);
    ++attempted[rank];
    if (!example.first) ++missing[rank][example.not_run];
  }
  if (attempted.empty()) {
    const auto known = showcase.readiness.find(backend);
    return known == showcase.readiness.end() || known->second.ready ? "no example was judged"
                                                                    : known->second.detail;
  }
  // What is said of several precisions is said once.
  std::vector<std::pair<std::string, std::string>> lines;  // precisions, and the rest
  for (const auto& [rank, reasons] : missing)
    for (const auto& [reason, count] : reasons) {
      const std::string rest = fmt::format(": {} of {}: {}", count, attempted[rank], reason);
      const auto same =
          std::ranges::find(lines, rest, &std::pair<std::string, std::string>::second);
      if (same == lines.end())
        lines.emplace_back(kPrecisions[rank], rest);
      else
        same->first += fmt::format(", {}", kPrecisions[rank]);
    }
  std::string text;
  for (const auto& [precisions, rest] : lines)
    text += (text.empty() ? "" : "; ") + precisions + rest;
  return text.empty() ? "-" : text;
}

Table backend_table(const Showcase& showcase) {
  Table table({"backend", "versions", "judged on", "correct", "has not run"}, "lllll");
  for (const auto& backend : backends_of(showcase)) {
    std::set<std::string> conditions;
    std::size_t judged = 0, correct = 0;
    for (const auto& example : showcase.examples) {
      if (example.backend != backend || !example.first) continue;
      conditions.insert(conditions_of(*example.first));
      ++judged;
      correct += example.first->evaluation.correct ? 1 : 0;
    }
    const auto known = showcase.readiness.find(backend);
    table.add(
        {clean(backend),
         clean(known == showcase.readiness.end() ? "-" : versions_text(known->second.versions),
               kMaxReason),
         clean(conditions.empty() ? "-" : fmt::format("{}", fmt::join(conditions, "; ")),
               kMaxReason),
         judged == 0 ? "-" : fmt::format("{} of {}", correct, judged),
         clean(not_run_text(showcase, backend), kMaxReason)});
  }
  return table;
}

// One row a backend and example, one column a precision.
Table verdict_table(const Showcase& showcase) {
  std::vector<std::string> header = {"backend", "example"};
  std::set<std::size_t> ranks;
  for (const auto& example : showcase.examples)
    if (example.first) ranks.insert(precision_rank(example.precision));
  for (const std::size_t rank : ranks) header.emplace_back(kPrecisions[rank]);
  Table table(header, std::string(header.size(), 'l'));

  std::vector<std::pair<std::string, std::string>> order;
  std::map<std::pair<std::string, std::string>, std::map<std::size_t, std::string>> cells;
  for (const auto& example : showcase.examples) {
    if (!example.first) continue;
    const std::pair key{example.backend, name_of(example)};
    if (!cells.contains(key)) order.push_back(key);
    cells[key][precision_rank(example.precision)] = clean(verdict_text(*example.first), kMaxReason);
  }
  for (const auto& key : order) {
    std::vector<std::string> row = {clean(key.first), clean(key.second)};
    for (const std::size_t rank : ranks) {
      const auto cell = cells[key].find(rank);
      row.push_back(cell == cells[key].end() ? "-" : cell->second);
    }
    table.add(std::move(row));
  }
  return table;
}

std::optional<double> phase_ms(const Judgement& judgement, const char* phase) {
  const auto it = judgement.phases_ms.find(phase);
  return it == judgement.phases_ms.end() ? std::nullopt : std::optional(it->second);
}

// "12.3 / 0.4": medians over a backend's examples, of the first judging and of the one after it.
template <class Part>
std::string seconds_text(const std::vector<const Example*>& examples, Part part) {
  std::string text;
  for (const auto which : {&Example::first, &Example::again}) {
    std::vector<double> values;
    for (const Example* example : examples)
      if (const auto& judgement = example->*which)
        if (const auto ms = part(*judgement)) values.push_back(*ms / 1000);
    if (!values.empty())
      text += fmt::format("{}{:.1f}", text.empty() ? "" : " / ", measure::median(values));
  }
  return text.empty() ? "-" : text;
}

Table seconds_table(const Showcase& showcase) {
  std::vector<std::string> header = {"backend", "evaluations"};
  for (const auto& [phase, title] : kPhases) header.emplace_back(title);
  header.emplace_back("whole");
  Table table(header, "l" + std::string(header.size() - 1, 'r'));
  std::map<std::string, std::vector<const Example*>, BackendLess> by_backend;
  for (const auto& example : showcase.examples)
    if (example.first) by_backend[example.backend].push_back(&example);
  for (const auto& [backend, examples] : by_backend) {
    std::vector<std::string> row = {clean(backend), std::to_string(examples.size())};
    for (const auto& [phase, title] : kPhases)
      row.push_back(seconds_text(examples, [name = phase](const Judgement& judgement) {
        return phase_ms(judgement, name);
      }));
    row.push_back(seconds_text(examples, [](const Judgement& j) { return j.whole_ms(); }));
    table.add(std::move(row));
  }
  return table;
}

Table profile_table(const Showcase& showcase) {
  Table table({"backend", "example", "precision", "judge, µs", "ncu, µs", "judge / ncu"}, "lllrrr");
  for (const auto& example : showcase.examples) {
    if (!example.first || !example.ncu_us || !example.first->evaluation.time_us) continue;
    const double time = *example.first->evaluation.time_us;
    table.add({clean(example.backend), clean(name_of(example)), example.precision,
               fmt::format("{:.2f}", time), fmt::format("{:.2f}", *example.ncu_us),
               fmt::format("{:.2f}", time / *example.ncu_us)});
  }
  return table;
}

Json json_of(const std::optional<Judgement>& judgement) {
  if (!judgement) return nullptr;
  const auto number = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  const Evaluation& evaluation = judgement->evaluation;
  return {{"backend", evaluation.backend},
          {"verdict", evaluation.verdict},
          {"correct", evaluation.correct},
          {"flags", evaluation.flags},
          {"speedup", number(evaluation.speedup)},
          {"speedup_ci95",
           evaluation.has_interval() ? Json{*evaluation.ci_low, *evaluation.ci_high} : Json()},
          {"time_us", number(evaluation.time_us)},
          {"reference_time_us", number(evaluation.reference_time_us)},
          {"card", judgement->card},
          {"size", judgement->size},
          {"phases_ms", judgement->phases_ms},
          {"whole_ms", number(judgement->whole_ms())},
          {"message", judgement->message}};
}

}  // namespace

std::optional<double> Judgement::whole_ms() const {
  const auto evaluation_ms = phase_ms(*this, "evaluation");
  if (!evaluation_ms) return std::nullopt;
  return *evaluation_ms + phase_ms(*this, "compile").value_or(0);
}

std::expected<Showcase, std::string> load_showcase(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  if (error)
    return std::unexpected(fmt::format("{} cannot be read: {}", shown(folder), error.message()));
  std::ranges::sort(entries);

  Showcase showcase;
  bool any = false;
  for (const auto& entry : entries) {
    const std::string name = entry.filename().string();
    const auto dash = name.rfind('-');
    if (dash == std::string::npos || dash == 0 || !fs::is_directory(entry, error)) continue;
    const std::string precision = name.substr(dash + 1);
    if (precision_rank(precision) == kPrecisions.size()) continue;
    any = true;
    if (auto added = add_folder(entry, name.substr(0, dash), precision, showcase.examples); !added)
      return std::unexpected(added.error());
  }
  if (!any)
    return std::unexpected(
        fmt::format("{} holds no folder of a backend, such as triton-fp32: scripts/judge-backends "
                    "makes them",
                    shown(folder)));
  std::ranges::stable_sort(showcase.examples, [](const Example& a, const Example& b) {
    if (a.backend != b.backend) return BackendLess()(a.backend, b.backend);
    if (a.problem != b.problem) return ProblemLess()(a.problem, b.problem);
    return std::pair(a.sample, precision_rank(a.precision)) <
           std::pair(b.sample, precision_rank(b.precision));
  });
  if (auto added = add_readiness(folder / "doctor.json", showcase); !added)
    return std::unexpected(added.error());
  for (const auto& entry : entries)
    if (entry.filename().string().starts_with("profile-") && entry.extension() == ".json")
      if (auto added = add_profile(entry, showcase.examples); !added)
        return std::unexpected(added.error());
  return showcase;
}

Report to_report(const Showcase& showcase) {
  Report report;
  report.add(backend_table(showcase));
  if (!showcase.versions.empty())
    report.add(clean(versions_text(showcase.versions) + ".", kMaxReason));
  if (auto table = verdict_table(showcase); !table.empty()) {
    report.add(std::string("Verdict, speedup over PyTorch with its 95 % interval, and flags:"));
    report.add(std::move(table));
  }
  if (auto table = seconds_table(showcase); !table.empty()) {
    report.add(std::string(
        "Seconds of one evaluation, medians of a backend's: of the first, with an empty build "
        "cache / of the same once more. Whole is compile and all the rest:"));
    report.add(std::move(table));
  }
  if (auto table = profile_table(showcase); !table.empty()) {
    report.add(
        std::string("The judge's time of a call beside Nsight Compute's, of its kernels "
                    "alone and with cold caches:"));
    report.add(std::move(table));
  }
  return report;
}

Json to_json(const Showcase& showcase) {
  Json json = {
      {"versions", showcase.versions}, {"backends", Json::object()}, {"examples", Json::array()}};
  for (const auto& backend : backends_of(showcase)) {
    const auto known = showcase.readiness.find(backend);
    json["backends"][backend] = {
        {"versions",
         known == showcase.readiness.end() ? Json::object() : Json(known->second.versions)},
        {"not_run", not_run_text(showcase, backend)}};
  }
  for (const auto& example : showcase.examples)
    json["examples"].push_back({{"backend", example.backend},
                                {"precision", example.precision},
                                {"problem", example.problem},
                                {"sample", example.sample},
                                {"first", json_of(example.first)},
                                {"again", json_of(example.again)},
                                {"ncu_us", example.ncu_us ? Json(*example.ncu_us) : Json()},
                                {"not_run", example.not_run}});
  return json;
}

Table to_table(const Showcase& showcase) {
  Table table(
      {"backend", "precision", "problem", "sample", "card", "size", "verdict", "speedup",
       "speedup_low", "speedup_high", "time_us", "whole_ms", "whole_again_ms", "ncu_us", "not_run"},
      "lllrlllrrrrrrrl");
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : std::string();
  };
  const auto whole = [](const std::optional<Judgement>& judgement) {
    return judgement ? judgement->whole_ms() : std::nullopt;
  };
  for (const auto& example : showcase.examples) {
    const Judgement judgement = example.first.value_or(Judgement{});
    const Evaluation& evaluation = judgement.evaluation;
    table.add({clean(example.backend), example.precision, clean(example.problem),
               std::to_string(example.sample), clean(judgement.card), clean(judgement.size),
               clean(evaluation.verdict), number(evaluation.speedup), number(evaluation.ci_low),
               number(evaluation.ci_high), number(evaluation.time_us), number(whole(example.first)),
               number(whole(example.again)), number(example.ncu_us),
               clean(example.not_run, kMaxReason)});
  }
  return table;
}

std::expected<std::string, std::string> with_block(const std::string& document,
                                                   const std::string& block) {
  const std::string lines = "\n" + document + "\n";
  const auto line_of = [&](const std::string& marker) {  // its place in `document`
    const std::string line = "\n" + marker + "\n";
    const auto at = lines.find(line);
    return at == std::string::npos || lines.find(line, at + 1) != std::string::npos
               ? std::string::npos
               : at;
  };
  const auto begin = line_of(kBlockBegins), end = line_of(kBlockEnds);
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    return std::unexpected(fmt::format("it needs the lines '{}' and '{}', once each, in this order",
                                       kBlockBegins, kBlockEnds));
  const auto after = begin + std::string_view(kBlockBegins).size() + 1;
  return document.substr(0, after) + block + document.substr(end);
}

}  // namespace kb::score
