#include "score/kernelbench_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "flag/flag.h"
#include "problem/id.h"

namespace kb::score {
namespace {

using Json = nlohmann::ordered_json;

std::unexpected<std::string> fail(std::string sentence) {
  return std::unexpected(std::move(sentence));
}

// NaN, Infinity and -Infinity outside strings become null.
std::string with_nulls(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    if (in_string && text[i] == '\\') {
      result += text.substr(i, 2);
      i += 2;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    bool replaced = false;
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
      if (in_string || !text.substr(i).starts_with(word)) continue;
      result += "null";
      i += word.size();
      replaced = true;
      break;
    }
    if (!replaced) result += text[i++];
  }
  return result;
}

const Json* member(const Json& json, const char* name) {
  if (!json.is_object()) return nullptr;
  const auto it = json.find(name);
  return it == json.end() ? nullptr : &*it;
}

// Whole numbers from `least` that an int holds.
std::optional<int> whole(const Json& json, int least) {
  if (!json.is_number_integer()) return std::nullopt;
  const double value = json.get<double>();
  if (value < least || value > std::numeric_limits<int>::max()) return std::nullopt;
  return json.get<int>();
}

std::optional<problem::Id> parse_key(std::string_view key, int level) {
  std::string_view rest = key;
  if (const auto first = problem::take_number(rest)) {
    if (rest.empty()) return *first > 0 ? std::optional(problem::Id{level, *first}) : std::nullopt;
    if (problem::take_prefix(rest, "_")) {
      const auto second = problem::take_number(rest);
      if (second && rest.empty() && *first > 0 && *second > 0) return problem::Id{*first, *second};
      return std::nullopt;
    }
  }
  return problem::parse_id(key);
}

bool is_result(const Json& json) {
  return member(json, "correctness") != nullptr || member(json, "compiled") != nullptr;
}

// Milliseconds of `name` to microseconds. -1 stands for "not measured"; a time that is not finite
// or not positive is none either. False: not a number.
bool read_time(const Json& entry, const char* name, std::optional<double>& time_us) {
  const Json* value = member(entry, name);
  if (value == nullptr || value->is_null()) return true;
  if (!value->is_number()) return false;
  const double us = value->get<double>() * 1000;
  if (std::isfinite(us) && us > 0) time_us = us;
  return true;
}

std::string text_of(const Json* json) {
  return json != nullptr && json->is_string() ? json->get<std::string>() : "";
}

std::string wrong_verdict(const Json* metadata, bool compiled) {
  if (!compiled) return "compile_error";
  if (metadata != nullptr && metadata->is_object())
    for (const auto& [name, value] : metadata->items())
      if (name.starts_with("runtime_error")) return "runtime_error";
  return "wrong_value";
}

std::expected<Evaluation, std::string> parse_result(const Json& entry, const problem::Id& id,
                                                    int position) {
  const auto bad = [&](const char* what) {
    return fail(fmt::format("problem {} is not as KernelBench writes it: {}", id.text(), what));
  };
  if (!is_result(entry)) return bad("a result is an object with `compiled` and `correctness`");
  Evaluation evaluation;
  evaluation.problem = id.text();
  evaluation.level = id.level;
  evaluation.sample = position;
  if (const Json* sample = member(entry, "sample_id"); sample != nullptr && !sample->is_null()) {
    const auto number = whole(*sample, 0);
    if (!number) return bad("`sample_id` is a number from 0");
    evaluation.sample = *number;
  }
  const Json* correct = member(entry, "correctness");
  if (correct != nullptr && !correct->is_null()) {
    if (!correct->is_boolean()) return bad("`correctness` is true or false");
    evaluation.correct = correct->get<bool>();
  }
  evaluation.compiled = evaluation.correct;
  if (const Json* compiled = member(entry, "compiled");
      compiled != nullptr && !compiled->is_null()) {
    if (!compiled->is_boolean()) return bad("`compiled` is true or false");
    evaluation.compiled = compiled->get<bool>();
  }
  // What was not compiled cannot have been right.
  evaluation.correct = evaluation.correct && evaluation.compiled;
  evaluation.public_compiled = evaluation.compiled;
  evaluation.public_correct = evaluation.correct;
  const Json* metadata = member(entry, "metadata");
  evaluation.verdict =
      evaluation.correct ? "correct" : wrong_verdict(metadata, evaluation.compiled);
  if (!read_time(entry, "runtime", evaluation.time_us)) return bad("`runtime` is a number");
  if (!read_time(entry, "ref_runtime", evaluation.reference_time_us))
    return bad("`ref_runtime` is a number");
  if (evaluation.correct && evaluation.time_us && evaluation.reference_time_us)
    evaluation.speedup = *evaluation.reference_time_us / *evaluation.time_us;
  if (metadata != nullptr) {
    if (const Json* flags = member(*metadata, "flags"); flags != nullptr && flags->is_array())
      for (const Json& flag : *flags)
        if (flag.is_string()) evaluation.flags.push_back(flag.get<std::string>());
    if (const Json* excessive = member(*metadata, "excessive_speedup");
        excessive != nullptr && excessive->is_boolean() && excessive->get<bool>())
      add_flag(evaluation.flags, "excessive_speedup");
    evaluation.conditions = text_of(member(*metadata, "hardware"));
  }
  return evaluation;
}

// KernelBench writes 1.0, not 1.
std::string python_float(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

}  // namespace

std::expected<Json, std::string> parse_python_json(std::string_view text) {
  std::set<std::string> names;
  std::string twice;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1 &&
        !names.insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  Json json = Json::parse(with_nulls(text), watch, /*allow_exceptions=*/false);
  if (json.is_discarded()) return fail("it is not JSON, or was cut off");
  if (!twice.empty()) return fail(fmt::format("it holds {} twice", clean(twice)));
  return json;
}

std::expected<std::vector<Evaluation>, std::string> parse_eval_results(std::string_view text,
                                                                       int level) {
  const auto json = parse_python_json(text);
  if (!json) return fail(json.error());
  if (!json->is_object())
    return fail("it is not an object by problem number, as eval_results.json is");
  std::vector<Evaluation> evaluations;
  std::set<std::pair<std::string, int>> seen;
  for (const auto& [key, value] : json->items()) {
    const auto id = parse_key(key, level);
    if (!id)
      return fail(fmt::format("`{}` is no problem's number, which eval_results.json has as keys",
                              clean(key)));
    if (id->level < 1)
      return fail("it does not say of which level its problems are; give it with --level");
    std::vector<std::pair<int, const Json*>> entries;
    if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i)
        entries.emplace_back(static_cast<int>(i), &value[i]);
    } else if (value.is_object() && !is_result(value)) {
      // By sample number.
      for (const auto& [sample, entry] : value.items()) {
        std::string_view rest = sample;
        const auto number = problem::take_number(rest);
        if (!number || !rest.empty())
          return fail(
              fmt::format("problem {} is not as KernelBench writes it: it has neither "
                          "`correctness` nor samples",
                          id->text()));
        entries.emplace_back(*number, &entry);
      }
    } else {
      entries.emplace_back(0, &value);
    }
    for (const auto& [position, entry] : entries) {
      auto evaluation = parse_result(*entry, *id, position);
      if (!evaluation) return fail(evaluation.error());
      if (!seen.insert({evaluation->problem, evaluation->sample}).second)
        return fail(fmt::format("it holds sample {} of problem {} twice", evaluation->sample,
                                evaluation->problem));
      evaluations.push_back(std::move(*evaluation));
    }
  }
  return evaluations;
}

std::expected<std::map<int, double>, std::string> parse_pass_at_k(std::string_view text) {
  const auto json = parse_python_json(text);
  if (!json) return fail(json.error());
  std::map<int, double> averages;
  for (const char* name : {"averages", "pass_at_k"}) {
    const Json* values = member(*json, name);
    if (values == nullptr || !values->is_object()) continue;
    for (const auto& [key, value] : values->items()) {
      std::string_view rest = key;
      problem::take_prefix(rest, "avg_");
      if (!problem::take_prefix(rest, "pass@")) continue;
      const auto k = problem::take_number(rest);
      if (k && *k > 0 && rest.empty() && value.is_number()) averages[*k] = value.get<double>();
    }
    if (!averages.empty()) return averages;
  }
  return fail("it holds no averages of pass@k");
}

Json kernelbench_analysis(const std::vector<Evaluation>& evaluations, Options options) {
  options.samples = SampleRule::first;
  std::vector<Evaluation> by_rule;
  std::map<int, std::map<std::string, const Evaluation*>> first;
  for (const Evaluation& evaluation : evaluations) by_rule.push_back(by_public_rule(evaluation));
  for (const Evaluation& evaluation : by_rule) {
    if (!evaluation.counts) continue;
    const Evaluation*& counting = first[evaluation.level][evaluation.problem];
    if (counting == nullptr || evaluation.sample < counting->sample) counting = &evaluation;
  }
  Json analysis = Json::object();
  for (const Summary& summary : summarize(by_rule, options)) {
    if (summary.kind != Summary::Kind::level) continue;
    const auto& counting = first[std::stoi(summary.name.substr(std::string("level").size()))];
    const auto compiled =
        std::ranges::count_if(counting, [](const auto& each) { return each.second->compiled; });
    Json fast_p = Json::object();
    for (const FastP& each : summary.fast_p) fast_p[python_float(each.p)] = each.value;
    Json pass_at_k = Json::object();
    for (const auto& [k, pass] : summary.pass_at_k)
      pass_at_k[std::to_string(k)] = pass.estimate ? Json(pass.estimate->value) : Json(nullptr);
    const auto mean = [](const std::optional<Estimate>& estimate) {
      return estimate ? Json(estimate->value) : Json(nullptr);
    };
    analysis[summary.name] = {
        {"total", summary.problems},
        {"compiled", compiled},
        {"correct", summary.correct},
        {"geometric_mean_speedup", mean(summary.geomean_correct)},
        {"geometric_mean_speedup_faster", mean(summary.geomean_correct_and_faster)},
        {"fast_p", std::move(fast_p)},
        {"pass_at_k", std::move(pass_at_k)}};
  }
  return analysis;
}

}  // namespace kb::score
