#include "judge/result.h"

#include <cmath>

namespace kb::judge {
namespace {

nlohmann::json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

const char* name_of(RateSource source) {
  switch (source) {
    case RateSource::unknown: return "unknown";
    case RateSource::datasheet: return "datasheet";
    case RateSource::measured: return "measured";
  }
  return "unknown";
}

nlohmann::json work_json(const std::optional<Work>& work) {
  if (!work) return nullptr;
  const auto known = [](double value) {
    return value > 0 ? number(value) : nlohmann::json(nullptr);
  };
  nlohmann::json json = {{"bytes", work->bytes},
                         {"operations", known(work->operations)},
                         {"copy_bytes_per_s", number(work->copy_bytes_per_s)},
                         {"operations_per_s", known(work->operations_per_s)},
                         {"rate_source", name_of(work->rate_source)},
                         {"measured", nullptr}};
  if (work->measured) json["measured"] = to_json(*work->measured);
  return json;
}

}  // namespace

nlohmann::json settings_json(const Options& options) {
  return {{"precision", options.precision},
          {"size", options.size},
          {"set", options.set},
          {"rules", options.rules == Rules::kernelbench ? "kernelbench" : "own"},
          {"trials", options.correctness_trials},
          {"stress", options.stress},
          {"timing", options.timing},
          {"timer", std::string(name_of(options.timer))},
          {"pairs", options.pairs},
          {"threads", options.threads}};
}

nlohmann::json to_json(const Result& result, const Options& options) {
  auto trials = nlohmann::json::array();
  for (const auto& trial : result.trials)
    trials.push_back({{"kind", trial.kind},
                      {"seed", trial.seed},
                      {"counted", trial.counted},
                      {"passed", trial.passed},
                      {"max_abs_error", number(trial.max_abs_error)}});
  // [calls, reference's wall in us, candidate's]: all that the estimate was made from, beside
  // overhead_us.
  auto turns = nlohmann::json::array();
  for (const auto& pair : result.turns)
    turns.push_back({pair.calls, pair.reference_wall_us, pair.candidate_wall_us});
  const bool by_public_rule = options.rules == Rules::kernelbench;
  // Under the public rule only the values decide, on the plain trials; everything else about a
  // verdict stands.
  const bool correct = by_public_rule ? result.public_correct.value_or(false) : result.correct();
  return {
      {"problem", result.problem},
      {"problem_hash", result.problem_hash},
      {"candidate", result.candidate},
      {"candidate_hash", result.candidate_hash},
      {"backend", result.backend},
      {"device", options.device},
      {"device_info", result.device},
      {"telemetry", result.telemetry},
      {"precision", options.precision},
      {"size", options.size},
      {"rules", by_public_rule ? "kernelbench" : "own"},
      {"timer", std::string(name_of(options.timer))},
      {"verdict", std::string(name_of(result.verdict))},
      {"compiled", result.compiled},
      {"correct", correct},
      {"public",
       {{"compiled", result.compiled}, {"correct", result.public_correct.value_or(false)}}},
      {"flags", result.flags},
      {"time_us", number(result.time_us)},
      {"reference_time_us", number(result.reference_time_us)},
      {"solo_time_us", number(result.solo_time_us)},
      {"speedup", number(result.speedup)},
      {"speedup_ci95", result.speedup_ci95 && std::isfinite(result.speedup_ci95->low)
                           ? nlohmann::json{result.speedup_ci95->low, result.speedup_ci95->high}
                           : nlohmann::json(nullptr)},
      {"speedup_at_least", number(result.speedup_at_least)},
      {"pairs", result.pairs},
      {"calls_per_turn", result.calls_per_turn},
      {"turns", turns},
      {"overhead_us",
       {{"reference", result.reference_overhead_us}, {"candidate", result.candidate_overhead_us}}},
      {"trials", trials},
      {"tolerance",
       {{"atol", result.tolerance.atol},
        {"rtol", result.tolerance.rtol},
        {"norm_rtol", number(result.tolerance.norm_rtol)},
        {"widened", result.tolerance.widened}}},
      {"max_abs_error", number(result.max_abs_error)},
      {"max_rel_error", number(result.max_rel_error)},
      {"norm_error_vs_truth", number(result.norm_error_vs_truth)},
      {"reference_norm_error_vs_truth", number(result.reference_norm_error_vs_truth)},
      {"speed_of_light_us", number(result.speed_of_light_us)},
      {"work", work_json(result.work)},
      {"seed", result.seed},
      {"phases_ms", result.phases_ms},
      {"freezer", result.freezer},
      {"cached_build", result.cached_build},
      {"message", result.message}};
}

}  // namespace kb::judge
