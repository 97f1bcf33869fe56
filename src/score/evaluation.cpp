#include "score/evaluation.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

namespace kb::score {
namespace {

using Json = nlohmann::json;

// The level of "level1/19"; 0 for anything else.
int level_of(std::string_view problem) {
  constexpr std::string_view kPrefix = "level";
  constexpr std::size_t kMaxDigits = 9;
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

std::unexpected<std::string> missing(const char* name, const char* type) {
  return std::unexpected(
      fmt::format("the result has no member `{}` that is {}; judge the sample again", name, type));
}

}  // namespace

bool Evaluation::faster_than(double p) const {
  return correct && speedup && std::isfinite(*speedup) && *speedup > 0 && *speedup > p;
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

  const Json* flags = member("flags");
  if (flags == nullptr || !flags->is_array()) return missing("flags", "a list of strings");
  for (const Json& flag : *flags) {
    if (!flag.is_string()) return missing("flags", "a list of strings");
    evaluation.flags.push_back(flag.get<std::string>());
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
  return evaluation;
}

}  // namespace kb::score
