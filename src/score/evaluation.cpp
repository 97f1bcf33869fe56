#include "score/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>

#include "flag/flag.h"

namespace kb::score {
namespace {

using Json = nlohmann::json;

std::unexpected<std::string> missing(std::string_view name, std::string_view type) {
  return std::unexpected(
      fmt::format("the result has no member `{}` that is {}; judge the sample again", name, type));
}

std::optional<double> positive(const Json& number) {
  const double value = number.get<double>();
  return std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
}

// Of turns [calls, reference's wall, candidate's wall], those with the most calls: the overhead of
// a turn is known for them.
// `side` is "reference" or "candidate".
std::expected<std::vector<double>, std::string> call_times(const Json& turns, const Json* overhead,
                                                           const std::string& side) {
  constexpr const char* kType = "a list of lists of three numbers";
  double overhead_us = 0;
  if (overhead != nullptr && overhead->is_object()) {
    const auto it = overhead->find(side);
    if (it != overhead->end() && it->is_number()) overhead_us = it->get<double>();
  }
  if (!turns.is_array()) return missing("turns", kType);
  double most_calls = 1;
  for (const Json& turn : turns) {
    if (!turn.is_array() || turn.size() != 3 ||
        !std::all_of(turn.begin(), turn.end(), [](const Json& n) { return n.is_number(); }))
      return missing("turns", kType);
    most_calls = std::max(most_calls, turn[0].get<double>());
  }
  std::vector<double> times;
  for (const Json& turn : turns) {
    const double wall = turn[side == "reference" ? 1 : 2].get<double>();
    const double time = (wall - overhead_us) / most_calls;
    if (turn[0].get<double>() == most_calls && std::isfinite(time) && time > 0)
      times.push_back(time);
  }
  return times;
}

}  // namespace

int level_of(const std::string& name) {
  constexpr std::string_view kPrefix = "level";
  constexpr std::size_t kMaxDigits = 9;
  std::string_view problem = name;
  if (!problem.starts_with(kPrefix)) return 0;
  problem.remove_prefix(kPrefix.size());
  const std::size_t slash = problem.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash > kMaxDigits ||
      slash + 1 == problem.size())
    return 0;
  if (problem.find_first_not_of("0123456789/") != std::string_view::npos ||
      problem.rfind('/') != slash)
    return 0;
  int level = 0;
  for (const char digit : problem.substr(0, slash)) level = level * 10 + (digit - '0');
  return level;
}

bool ProblemLess::operator()(const std::string& a, const std::string& b) const {
  const auto key = [](const std::string& name) {
    const int level = level_of(name);
    std::string_view number = level > 0 ? std::string_view(name).substr(name.find('/') + 1) : "";
    while (number.starts_with('0')) number.remove_prefix(1);
    return std::tuple(level > 0 ? level : std::numeric_limits<int>::max(), number.size(), number,
                      std::string_view(name));
  };
  return key(a) < key(b);
}

bool disqualifies(const std::string& flag) {
  const auto* const facts = find_flag(flag);
  return facts == nullptr || !facts->only_explains;
}

bool Evaluation::faster_than(double p) const {
  return correct && speedup && std::isfinite(*speedup) && *speedup > 0 && *speedup > p;
}

bool Evaluation::has_interval() const {
  return ci_low && ci_high && std::isfinite(*ci_low) && std::isfinite(*ci_high) &&
         *ci_low <= *ci_high;
}

bool Evaluation::verified_faster_than(double p) const {
  return faster_than(p) && std::none_of(flags.begin(), flags.end(), disqualifies) &&
         has_interval() && *ci_low > p && at_least.value_or(*ci_low) > p;
}

std::expected<Evaluation, std::string> parse_evaluation(const std::string& result_json) {
  const Json json = Json::parse(result_json, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return std::unexpected("the result is no JSON object; judge the sample again");
  const auto member = [&json](const char* name) -> const Json* {
    const auto it = json.find(name);
    return it == json.end() ? nullptr : &*it;
  };
  Evaluation evaluation;
  for (const auto& [name, target] :
       {std::pair{"problem", &evaluation.problem}, std::pair{"backend", &evaluation.backend},
        std::pair{"verdict", &evaluation.verdict}}) {
    const Json* value = member(name);
    if (value == nullptr || !value->is_string()) return missing(name, "a string");
    *target = value->get<std::string>();
  }
  evaluation.level = level_of(evaluation.problem);
  evaluation.counts = evaluation.verdict != "infrastructure_error";

  if (const Json* sample = member("sample")) {
    // As double: an integer of any size compares right.
    if (!sample->is_number_integer() || sample->get<double>() < 0 ||
        sample->get<double>() > std::numeric_limits<int>::max()) {
      return missing("sample", "a number from 0");
    }
    evaluation.sample = sample->get<int>();
  }
  const Json* correct = member("correct");
  if (correct == nullptr || !correct->is_boolean()) return missing("correct", "true or false");
  // Of two members that contradict each other, neither makes a kernel correct.
  evaluation.correct = correct->get<bool>() && evaluation.verdict == "correct";
  evaluation.compiled = evaluation.correct;
  if (const Json* compiled = member("compiled")) {
    if (!compiled->is_boolean()) return missing("compiled", "true or false");
    evaluation.compiled = compiled->get<bool>();
  }
  evaluation.public_compiled = evaluation.compiled;
  evaluation.public_correct = evaluation.correct;
  if (const Json* rule = member("public")) {
    for (const auto& [name, target] : {std::pair{"compiled", &evaluation.public_compiled},
                                       std::pair{"correct", &evaluation.public_correct}}) {
      const auto it = rule->is_object() ? rule->find(name) : rule->end();
      if (it == rule->end() || !it->is_boolean())
        return missing("public", "an object with `compiled` and `correct`");
      *target = it->get<bool>();
    }
  }

  const Json* flags = member("flags");
  if (flags == nullptr || !flags->is_array()) return missing("flags", "a list of strings");
  for (const Json& flag : *flags) {
    if (!flag.is_string()) return missing("flags", "a list of strings");
    evaluation.flags.push_back(flag.get<std::string>());
  }
  for (const auto& [name, target] :
       {std::pair{"time_us", &evaluation.time_us},
        std::pair{"reference_time_us", &evaluation.reference_time_us}}) {
    const Json* time = member(name);
    if (time == nullptr || time->is_null()) continue;
    if (!time->is_number()) return missing(name, "a number or null");
    *target = positive(*time);
  }
  if (const Json* turns = member("turns")) {
    for (const auto& [side, target] : {std::pair{"reference", &evaluation.reference_times_us},
                                       std::pair{"candidate", &evaluation.times_us}}) {
      auto times = call_times(*turns, member("overhead_us"), side);
      if (!times) return std::unexpected(times.error());
      *target = std::move(*times);
    }
  }
  if (const Json* speedup = member("speedup"); speedup != nullptr && !speedup->is_null()) {
    if (!speedup->is_number()) return missing("speedup", "a number or null");
    evaluation.speedup = speedup->get<double>();
  }
  if (const Json* interval = member("speedup_ci95"); interval != nullptr && !interval->is_null()) {
    // NaN is written as null.
    const auto is_bound = [](const Json& bound) { return bound.is_number() || bound.is_null(); };
    if (!interval->is_array() || interval->size() != 2 || !is_bound((*interval)[0]) ||
        !is_bound((*interval)[1])) {
      return missing("speedup_ci95", "a list of two numbers, or null");
    }
    if ((*interval)[0].is_number() && (*interval)[1].is_number()) {
      evaluation.ci_low = (*interval)[0].get<double>();
      evaluation.ci_high = (*interval)[1].get<double>();
    }
  }
  if (const Json* bound = member("speedup_at_least"); bound != nullptr && !bound->is_null()) {
    if (!bound->is_number()) return missing("speedup_at_least", "a number or null");
    evaluation.at_least = bound->get<double>();
  }
  for (const char* name : {"device", "precision", "size"}) {
    const Json* value = member(name);
    if (value == nullptr || !value->is_string()) continue;
    // Any card of a host will do.
    const std::string word = value->get<std::string>();
    evaluation.conditions +=
        (evaluation.conditions.empty() ? "" : ", ") + word.substr(0, word.find(':'));
  }
  return evaluation;
}

Evaluation by_public_rule(Evaluation evaluation) {
  if (!evaluation.counts) return evaluation;
  evaluation.compiled = evaluation.public_compiled;
  evaluation.correct = evaluation.public_correct;
  if (evaluation.correct) {
    evaluation.verdict = "correct";
  } else if (evaluation.verdict == "correct") {
    evaluation.verdict = "wrong_value";
  }
  return evaluation;
}

}  // namespace kb::score
