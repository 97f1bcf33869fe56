#include "report/document.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "card/card.h"

namespace kb::report {
namespace {

using Json = nlohmann::json;

// The curve of fast_p: so many values of p in each factor of ten.
constexpr int kPointsPerDecade = 24;
constexpr double kSmallestP = 0.1, kLeastLargestP = 4, kMostLargestP = 1000;
// What the search looks at; the whole message is in the sample.
constexpr std::size_t kMaxMessage = 200;

Json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

std::optional<double> number_in(const Json& object, const char* name) {
  if (!object.is_object()) return std::nullopt;
  const auto it = object.find(name);
  if (it == object.end() || !it->is_number()) return std::nullopt;
  const double value = it->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string text_in(const Json& object, const char* name) {
  if (!object.is_object()) return "";
  const auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

std::string device_name(const Json& result) {
  return result.is_object() ? text_in(result.value("device_info", Json()), "name") : "";
}

// "cuda, fp32, public (NVIDIA H200)"
Json conditions_json(const std::map<std::string, std::set<std::string>>& conditions) {
  auto list = Json::array();
  for (const auto& [words, devices] : conditions) {
    std::string names;
    for (const auto& device : devices) names += (names.empty() ? "" : ", ") + device;
    list.push_back(names.empty() ? words : words + " (" + names + ")");
  }
  return list;
}

std::vector<double> curve_thresholds(const std::vector<score::Evaluation>& evaluations) {
  double largest = kLeastLargestP;
  for (const auto& evaluation : evaluations)
    if (evaluation.faster_than(largest / 1.2)) largest = *evaluation.speedup * 1.2;
  largest = std::min(largest, kMostLargestP);
  std::vector<double> thresholds;
  for (int i = 0; thresholds.empty() || thresholds.back() < largest; ++i)
    thresholds.push_back(kSmallestP * std::pow(10, static_cast<double>(i) / kPointsPerDecade));
  return thresholds;
}

Json curves(const Input& input) {
  score::Options options = input.options;
  options.thresholds = curve_thresholds(input.evaluations);
  options.ks = {1};
  auto list = Json::array();
  for (const auto& summary : score::summarize(input.evaluations, options)) {
    auto points = Json::array();
    for (const auto& at : summary.fast_p)
      points.push_back({at.p, at.value, at.ci95.low, at.ci95.high, at.verified,
                        at.verified_ci95.low, at.verified_ci95.high});
    list.push_back({{"name", summary.name}, {"points", std::move(points)}});
  }
  return list;
}

std::string beginning(const std::string& text) {
  if (text.size() <= kMaxMessage) return text;
  std::size_t end = kMaxMessage;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

Json row(const score::Evaluation& evaluation, const Detail& detail, const Input& input) {
  const auto name = input.problem_names.find(evaluation.problem);
  return {{"key", evaluation.problem + "/" + std::to_string(evaluation.sample)},
          {"problem", evaluation.problem},
          {"name", name == input.problem_names.end() ? "" : name->second},
          {"level", evaluation.level},
          {"sample", evaluation.sample},
          {"backend", evaluation.backend},
          {"verdict", evaluation.verdict},
          {"correct", evaluation.correct},
          {"speedup", number(evaluation.speedup)},
          {"ci95", evaluation.has_interval() ? Json{*evaluation.ci_low, *evaluation.ci_high}
                                             : Json(nullptr)},
          {"time_us", number(evaluation.time_us)},
          {"reference_time_us", number(evaluation.reference_time_us)},
          {"flags", evaluation.flags},
          {"clean", std::ranges::none_of(evaluation.flags, score::disqualifies)},
          {"message", beginning(text_in(detail.result, "message"))}};
}

Json source_json(const Source& source) {
  return {{"file", source.file}, {"text", source.text}};
}

// A seed has 63 bits, of which a number of JavaScript would keep 53.
Json seeds(const Json& result) {
  auto words = Json::array();
  const auto trials = result.is_object() ? result.find("trials") : result.end();
  if (trials == result.end() || !trials->is_array()) return words;
  for (const auto& trial : *trials) {
    const bool known = trial.is_object() && trial.contains("seed") && trial["seed"].is_number();
    words.push_back(known ? trial["seed"].dump() : "");
  }
  return words;
}

Json sample_json(const Detail& detail) {
  auto earlier = Json::array();
  for (const auto& source : detail.earlier) earlier.push_back(source_json(source));
  return {{"result", detail.result},
          {"seeds", seeds(detail.result)},
          {"finished_at", detail.finished_at},
          {"source", detail.source ? source_json(*detail.source) : Json(nullptr)},
          {"source_note", detail.source_note},
          {"earlier", std::move(earlier)},
          {"roofline", roofline(detail.result)}};
}

// A rate that a problem of some precision may use by its tolerance.
struct Roof {
  const char* precision;
  const char* name;
  double datasheet;
};
std::vector<Roof> roofs_for(const card::Rates& rates, const std::string& precision) {
  if (precision == "fp16") return {{"fp16", "fp16, tensor cores", rates.fp16}};
  if (precision == "bf16") return {{"bf16", "bf16, tensor cores", rates.bf16}};
  return {{"fp32", "fp32", rates.fp32}, {"tf32", "tf32, tensor cores", rates.tf32}};
}

// What `doctor --measure` had measured when the result was made; null where it had not.
Json measured_rates(const Json& work) {
  if (!work.is_object()) return nullptr;
  const auto measured = work.find("measured");
  if (measured == work.end() || !measured->is_object()) return nullptr;
  return measured->value("operations_per_s", Json());
}

}  // namespace

Json roofline(const Json& result) {
  if (!result.is_object() || !result.contains("work")) return nullptr;
  const Json& work = result["work"];
  const auto bytes = number_in(work, "bytes");
  if (!bytes || *bytes <= 0) return nullptr;
  Json roofs = {{"bytes", *bytes}, {"ceilings", Json::array()}};
  const auto operations = number_in(work, "operations");
  if (operations && *operations > 0) {
    roofs["operations"] = *operations;
    roofs["intensity"] = *operations / *bytes;
  }
  const auto* card = card::of_device(device_name(result));
  const Json measured = measured_rates(work);
  bool any_measured = false;
  for (const auto& roof :
       roofs_for(card != nullptr ? card->rates : card::Rates(), text_in(result, "precision"))) {
    const auto rate = number_in(measured, roof.precision);
    const bool here = rate && *rate > 0;
    any_measured = any_measured || here;
    if (here)
      roofs["ceilings"].push_back(
          {{"name", std::string(roof.precision) + ", measured"}, {"operations_per_s", *rate}});
    else if (roof.datasheet > 0)
      roofs["ceilings"].push_back({{"name", roof.name}, {"operations_per_s", roof.datasheet}});
  }
  if (card != nullptr && !any_measured) {
    roofs["memory_bytes_per_s"] = card->memory_bytes_per_s;
    roofs["memory"] = std::string(card->name) + ", datasheet";
  } else if (const auto copy = number_in(work, "copy_bytes_per_s"); copy && *copy > 0) {
    roofs["memory_bytes_per_s"] = *copy;
    roofs["memory"] = "a copy, measured";
  }
  return roofs;
}

Document make_document(const Input& input) {
  std::vector<const score::Evaluation*> order;
  for (const auto& evaluation : input.evaluations) order.push_back(&evaluation);
  std::ranges::stable_sort(order, [](const auto* a, const auto* b) {
    const score::ProblemLess less;
    if (less(a->problem, b->problem)) return true;
    return !less(b->problem, a->problem) && a->sample < b->sample;
  });

  Document document;
  auto rows = Json::array();
  auto meanings = Json::object();
  std::map<std::string, std::set<std::string>> conditions;  // their devices' names
  std::set<std::string> finished;
  const Detail nothing;
  for (const auto* evaluation : order) {
    const auto it = input.details.find({evaluation->problem, evaluation->sample});
    const Detail& detail = it == input.details.end() ? nothing : it->second;
    rows.push_back(row(*evaluation, detail, input));
    document.samples.push_back(sample_json(detail));
    if (!evaluation->conditions.empty()) {
      auto& devices = conditions[evaluation->conditions];
      if (const std::string device = device_name(detail.result); !device.empty())
        devices.insert(device);
    }
    if (!detail.finished_at.empty()) finished.insert(detail.finished_at);
    for (const auto& flag : evaluation->flags)
      if (const auto known = input.flag_meanings.find(flag); known != input.flag_meanings.end())
        meanings[flag] = known->second;
  }
  document.run = {{"run", input.run},
                  {"tool", input.tool},
                  {"rule", input.rule},
                  {"notes", input.notes},
                  {"conditions", conditions_json(conditions)},
                  {"flags", std::move(meanings)},
                  {"summaries", score::to_json(input.summaries)},
                  {"curves", curves(input)},
                  {"samples", std::move(rows)}};
  if (!finished.empty()) document.run["judged"] = {*finished.begin(), *finished.rbegin()};
  return document;
}

}  // namespace kb::report
