#include "profile/raw_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "profile/operators.h"

namespace kb::profile {
namespace {

constexpr std::size_t kMaxName = 400;
constexpr std::size_t kMaxColumns = 4096;

using Row = std::vector<std::string>;

/// One record of `text` from `at` on, which is moved behind it. Quotes may hold commas, line breaks
/// and, doubled, quotes. Null for a quote without an end, and for too many columns.
std::optional<Row> next_record(std::string_view text, std::size_t& at) {
  Row row(1);
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c != '"') {
        row.back() += c;
      } else if (at + 1 < text.size() && text[at + 1] == '"') {
        row.back() += '"';
        ++at;
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      if (row.size() == kMaxColumns) return std::nullopt;
      row.emplace_back();
    } else if (c == '\n') {
      ++at;
      return row;
    } else if (c != '\r') {
      row.back() += c;
    }
  }
  return quoted ? std::nullopt : std::optional(std::move(row));
}

// "1,234.5": ncu groups thousands where the locale does.
std::optional<double> number_in(std::string text) {
  std::erase(text, ',');
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

// --print-units base makes this 1; a version that scales all the same is read rightly.
double scale_of(std::string_view unit) {
  static const std::map<std::string_view, double> kScales = {
      {"us", 1e3},     {"usecond", 1e3}, {"ms", 1e6},    {"msecond", 1e6}, {"s", 1e9},
      {"second", 1e9}, {"Kbyte", 1e3},   {"Mbyte", 1e6}, {"Gbyte", 1e9},   {"Tbyte", 1e12}};
  const auto scale = kScales.find(unit.substr(0, unit.find('/')));
  return scale == kScales.end() ? 1 : scale->second;
}

struct Table {
  std::map<std::string, std::size_t, std::less<>> columns;
  Row units;
  std::size_t body = 0;  ///< where the launches begin
};

std::expected<Table, std::string> read_head(std::string_view page) {
  constexpr std::string_view kHead = "\"ID\",";
  std::size_t at = page.starts_with(kHead) ? 0 : page.find(fmt::format("\n{}", kHead));
  if (at == page.npos) return std::unexpected("Nsight Compute printed no table");
  if (page[at] == '\n') ++at;
  const auto names = next_record(page, at);
  if (!names) return std::unexpected("Nsight Compute's table has a broken first line");
  auto units = next_record(page, at);
  if (!units) return std::unexpected("Nsight Compute's table has a broken line of units");
  Table table{.columns = {}, .units = std::move(*units), .body = at};
  for (std::size_t i = 0; i < names->size(); ++i) table.columns.emplace((*names)[i], i);
  return table;
}

std::optional<double> value_of(const Table& table, const Row& row, std::string_view name) {
  const auto column = table.columns.find(name);
  if (column == table.columns.end() || column->second >= row.size()) return std::nullopt;
  const std::size_t i = column->second;
  const auto value = number_in(row[i]);
  if (!value) return std::nullopt;
  return *value * (i < table.units.size() ? scale_of(table.units[i]) : 1);
}

Numbers numbers_of(const Table& table, const Row& row) {
  Numbers numbers;
  for (const auto& measure : measures()) {
    auto& number = numbers[measure.number];
    for (const auto& name : measure.names) {
      const auto value = value_of(table, row, name);
      if (!value) continue;
      number = !number ? *value : measure.add ? *number + *value : std::max(*number, *value);
    }
    if (number) *number *= measure.factor;
  }
  return numbers;
}

}  // namespace

std::expected<std::vector<Launch>, std::string> parse_raw_page(std::string_view page,
                                                               std::size_t most) {
  if (page.size() > kMaxPageBytes)
    return std::unexpected("Nsight Compute printed more than 16 MiB");
  const auto table = read_head(page);
  if (!table) return std::unexpected(table.error());
  const auto name = table->columns.find("Kernel Name");
  if (name == table->columns.end())
    return std::unexpected("Nsight Compute's table has no column \"Kernel Name\"");
  std::vector<Launch> launches;
  for (std::size_t at = table->body; at < page.size() && launches.size() < most;) {
    const auto row = next_record(page, at);
    if (!row) return std::unexpected("Nsight Compute's table ends within a quote");
    // Its own messages, and empty lines.
    if (row->size() <= name->second || !number_in(row->front())) continue;
    launches.push_back({clean((*row)[name->second], kMaxName), numbers_of(*table, *row)});
  }
  return launches;
}

}  // namespace kb::profile
