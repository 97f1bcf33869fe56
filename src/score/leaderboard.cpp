#include "score/leaderboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace kb::score {
namespace {

// The number behind the prefix, if all of the rest is one.
std::optional<double> number_behind(std::string_view word, std::string_view prefix) {
  if (!word.starts_with(prefix) || word.size() == prefix.size()) return std::nullopt;
  const std::string rest(word.substr(prefix.size()));
  if (rest.find_first_not_of("0123456789.") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(rest.c_str(), &end);
  return *end == '\0' && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::expected<Metric, std::string> parse_metric(std::string_view word) {
  constexpr double kLargestK = 1e6;
  Metric metric;
  metric.name = word;
  if (const auto p = number_behind(word, "fast_")) {
    metric.kind = Metric::Kind::fast;
    metric.p = *p;
  } else if (const auto q = number_behind(word, "verified_")) {
    metric.kind = Metric::Kind::verified;
    metric.p = *q;
  } else if (const auto k = number_behind(word, "pass@");
             k && *k >= 1 && *k <= kLargestK && *k == std::floor(*k)) {
    metric.kind = Metric::Kind::pass;
    metric.k = static_cast<int>(*k);
  } else if (word == "correct") {
    metric.kind = Metric::Kind::correct;
  } else if (word == "geomean") {
    metric.kind = Metric::Kind::geomean;
  } else if (word == "geomean_faster") {
    metric.kind = Metric::Kind::geomean_faster;
  } else {
    return std::unexpected(
        fmt::format("'{}' is no metric; there are fast_P, verified_P, pass@K, correct, geomean and "
                    "geomean_faster",
                    clean(word)));
  }
  return metric;
}

std::optional<Estimate> value_of(const Summary& summary, const Metric& metric) {
  switch (metric.kind) {
    case Metric::Kind::fast:
    case Metric::Kind::verified:
      for (const FastP& each : summary.fast_p) {
        if (each.p != metric.p) continue;
        return metric.kind == Metric::Kind::fast ? Estimate{each.value, each.ci95}
                                                 : Estimate{each.verified, each.verified_ci95};
      }
      return std::nullopt;
    case Metric::Kind::pass: {
      const auto it = summary.pass_at_k.find(metric.k);
      return it == summary.pass_at_k.end() ? std::nullopt : it->second.estimate;
    }
    case Metric::Kind::correct: return summary.correct_rate;
    case Metric::Kind::geomean: return summary.geomean_correct;
    case Metric::Kind::geomean_faster: return summary.geomean_correct_and_faster;
  }
  return std::nullopt;
}

std::vector<Entry> rank(std::vector<Entry> entries, const Metric& metric) {
  for (Entry& entry : entries) entry.value = value_of(entry.summary, metric);
  std::ranges::stable_sort(entries, [](const Entry& a, const Entry& b) {
    if (!a.value || !b.value) return a.value.has_value() && !b.value.has_value();
    return a.value->value > b.value->value;
  });
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto number = [&](std::size_t at) {
      return entries[at].value ? std::optional(entries[at].value->value) : std::nullopt;
    };
    entries[i].rank =
        i > 0 && number(i) == number(i - 1) ? entries[i - 1].rank : static_cast<int>(i) + 1;
  }
  return entries;
}

nlohmann::json to_json(const std::vector<Entry>& entries, const Metric& metric) {
  auto runs = nlohmann::json::array();
  for (const Entry& entry : entries) {
    auto json = to_json(entry.summary);
    json["rank"] = entry.rank;
    json["run"] = entry.run;
    json["value"] = entry.value ? nlohmann::json(entry.value->value) : nlohmann::json(nullptr);
    json["value_ci95"] = entry.value ? nlohmann::json{entry.value->ci95.low, entry.value->ci95.high}
                                     : nlohmann::json(nullptr);
    runs.push_back(std::move(json));
  }
  return {{"sort", metric.name}, {"runs", std::move(runs)}};
}

namespace {

/// The one that ranks, then those that any leaderboard has.
std::vector<Metric> columns_of(const Metric& metric) {
  std::vector<Metric> columns{metric};
  for (const char* word : {"fast_1", "verified_1", "correct", "geomean", "geomean_faster"})
    if (metric.name != word) columns.push_back(parse_metric(word).value());
  return columns;
}

}  // namespace

namespace {

// The cells before the metrics.
std::vector<std::string> beginning_of(const Entry& entry) {
  return {std::to_string(entry.rank), clean(entry.run), std::to_string(entry.summary.problems),
          std::to_string(entry.summary.attempted)};
}

}  // namespace

Table to_table(const std::vector<Entry>& entries, const Metric& metric) {
  const auto columns = columns_of(metric);
  std::vector<std::string> header{"rank", "run", "problems", "attempted", metric.name, "95%"};
  std::string alignment = "rlrrrr";
  for (std::size_t i = 1; i < columns.size(); ++i) {
    header.push_back(columns[i].name);
    alignment += 'r';
  }
  Table table(std::move(header), std::move(alignment));
  for (const Entry& entry : entries) {
    auto row = beginning_of(entry);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto value = value_of(entry.summary, columns[i]);
      row.push_back(value ? fmt::format("{:.3f}", value->value) : "-");
      if (i == 0)
        row.push_back(value ? fmt::format("{:.3f}-{:.3f}", value->ci95.low, value->ci95.high)
                            : "-");
    }
    table.add(std::move(row));
  }
  return table;
}

Table to_numbers(const std::vector<Entry>& entries, const Metric& metric) {
  const auto columns = columns_of(metric);
  std::vector<std::string> header{"rank",      "run", "problems", "attempted",
                                  metric.name, "low", "high"};
  for (std::size_t i = 1; i < columns.size(); ++i) header.push_back(columns[i].name);
  std::string alignment(header.size(), 'r');
  Table table(std::move(header), std::move(alignment));
  for (const Entry& entry : entries) {
    auto row = beginning_of(entry);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto value = value_of(entry.summary, columns[i]);
      row.push_back(value ? fmt::format("{}", value->value) : "");
      if (i > 0) continue;
      row.push_back(value ? fmt::format("{}", value->ci95.low) : "");
      row.push_back(value ? fmt::format("{}", value->ci95.high) : "");
    }
    table.add(std::move(row));
  }
  return table;
}

}  // namespace kb::score
