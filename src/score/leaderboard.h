// Runs in order of a metric.
#pragma once

#include <expected>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "score/score.h"
#include "score/table.h"

namespace kb::score {

/// fast_P, verified_P, pass@K, correct, geomean or geomean_faster.
struct Metric {
  enum class Kind { fast, verified, pass, correct, geomean, geomean_faster };
  Kind kind = Kind::fast;
  double p = 1;  ///< of fast and verified
  int k = 1;     ///< of pass
  std::string name = "fast_1";
};
/// Error: one sentence, which lists what there is.
std::expected<Metric, std::string> parse_metric(std::string_view word);
/// Null where the summary has no such value: a mean of nothing, a k without samples.
std::optional<Estimate> value_of(const Summary& summary, const Metric& metric);

struct Entry {
  std::string run;
  Summary summary;  ///< over the same problems for all entries, or the ranks mean little
  std::optional<Estimate> value;
  int rank = 0;  ///< from 1; runs of one value share one; null values come last
};
/// Fills in `value` and `rank`, and sorts; what is equal stays in the given order.
std::vector<Entry> rank(std::vector<Entry> entries, const Metric& metric);

nlohmann::json to_json(const std::vector<Entry>& entries, const Metric& metric);
/// For people.
Table to_table(const std::vector<Entry>& entries, const Metric& metric);
/// For CSV: the same numbers unrounded, the interval in two columns, empty where there is no value.
Table to_numbers(const std::vector<Entry>& entries, const Metric& metric);

}  // namespace kb::score
