// score::to_text: three tables, each aligned by its widest cell.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "score/score.h"

namespace kb::score {
namespace {

// A name longer than this would push a table off the screen.
constexpr std::size_t kMaxCell = 60;

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

// The number of characters, which for what we print is the number of columns.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

// A stranger's string, fit for a terminal: no control characters (C0, C1, DEL), none that turn the
// direction of writing, no broken UTF-8, and not too long.
std::string clean(std::string_view text) {
  std::string result;
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xc2 && lead < 0xe0 ? 2
                               : lead >= 0xe0 && lead < 0xf0 ? 3
                               : lead >= 0xf0 && lead < 0xf5 ? 4
                                                             : 0;
    std::size_t have = 1;
    while (have < length && i + have < text.size() && continues(text[i + have])) ++have;
    const std::string_view character = text.substr(i, have);
    i += have;
    if (characters == kMaxCell) return result + "…";
    if (length != have) {
      result += '?';
    } else {
      const bool control = lead < 0x20 || lead == 0x7f ||
                           (lead == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0);
      // U+200E, U+200F, U+2028–U+202E and U+2066–U+2069, and U+061C.
      const bool direction = (character >= "\xe2\x80\x8e" && character <= "\xe2\x80\x8f") ||
                             (character >= "\xe2\x80\xa8" && character <= "\xe2\x80\xae") ||
                             (character >= "\xe2\x81\xa6" && character <= "\xe2\x81\xa9") ||
                             character == "\xd8\x9c";
      if (control || direction) continue;
      result += character;
    }
    ++characters;
  }
  return result;
}

class Table {
 public:
  /// `alignment` has a letter a column: l or r.
  Table(std::vector<std::string> header, std::string alignment)
      : rows_{std::move(header)}, alignment_(std::move(alignment)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const {
    std::vector<std::size_t> widths(rows_[0].size(), 0);
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
    }
    std::string result;
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string space(widths[i] - width(row[i]), ' ');
        if (i > 0) line += "  ";
        line += alignment_[i] == 'l' ? row[i] + space : space + row[i];
      }
      line.erase(line.find_last_not_of(' ') + 1);
      result += line + "\n";
    }
    return result;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::string alignment_;
};

std::string factor(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{:.2f}x", *value) : "-";
}

std::string scores(const std::vector<Summary>& summaries) {
  std::vector<std::string> header{"level", "problems", "correct"};
  if (!summaries.empty()) {
    for (const FastP& each : summaries[0].fast_p)
      header.push_back(fmt::format("fast_{:g}", each.p));
  }
  // The geometric means are over the correct and over the faster kernels.
  header.insert(header.end(), {"fast_1 95%", "verified_1", "geomean", "geomean>1"});
  std::string alignment(header.size(), 'r');
  alignment[0] = 'l';
  Table table(std::move(header), std::move(alignment));
  for (const Summary& summary : summaries) {
    std::vector<std::string> row{summary.name, std::to_string(summary.problems),
                                 std::to_string(summary.correct)};
    const FastP* one = nullptr;
    for (const FastP& each : summary.fast_p) {
      row.push_back(fmt::format("{:.3f}", each.value));
      if (each.p == 1) one = &each;
    }
    row.push_back(one == nullptr ? "-"
                                 : fmt::format("{:.3f}-{:.3f}", one->ci95.low, one->ci95.high));
    row.push_back(one == nullptr ? "-" : fmt::format("{:.3f}", one->verified));
    row.push_back(factor(summary.geomean_correct));
    row.push_back(factor(summary.geomean_correct_and_faster));
    table.add(std::move(row));
  }
  return table.text();
}

// The scores beside the verified ones count what workers have reported of themselves.
std::string self_reports(const std::vector<Evaluation>& evaluations) {
  const auto count =
      std::count_if(evaluations.begin(), evaluations.end(), [](const Evaluation& evaluation) {
        return evaluation.speedup &&
               std::count(evaluation.flags.begin(), evaluation.flags.end(), "self_reported") > 0;
      });
  if (count == 0) return "";
  return fmt::format("\n{} self-reported (--timer): in fast_p and the means, never in verified\n",
                     count == 1 ? "1 speedup is" : fmt::format("{} speedups are", count));
}

std::string passes(const Summary& all) {
  if (all.pass_at_k.size() < 2) return "";
  std::string result = "\n";
  for (const auto& [k, value] : all.pass_at_k)
    result += fmt::format("{}pass@{} {:.3f}", k == 1 ? "" : "  ", k, value);
  return result + "\n";
}

std::string verdicts(const Summary& all) {
  std::vector<std::pair<std::string, int>> counts(all.verdicts.begin(), all.verdicts.end());
  std::stable_sort(counts.begin(), counts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table({"verdict", "samples"}, "lr");
  for (const auto& [verdict, count] : counts) table.add({clean(verdict), std::to_string(count)});
  std::string result = "\n" + table.text();
  if (all.infrastructure_errors > 0) {
    result += fmt::format(
        "{} not judged for a fault of this machine: left out of the scores; run again to judge\n",
        all.infrastructure_errors == 1 ? "1 sample was"
                                       : fmt::format("{} samples were", all.infrastructure_errors));
  }
  return result;
}

// "level1/19" after "level1/2": by level, then by the number behind the slash, then by name.
auto sort_key(const Evaluation& evaluation) {
  const std::string& name = evaluation.problem;
  const std::string number = evaluation.level > 0 ? name.substr(name.find('/') + 1) : "";
  const int level = evaluation.level > 0 ? evaluation.level : std::numeric_limits<int>::max();
  return std::tuple(level, number.size(), number, name, evaluation.sample);
}

std::string samples(const std::vector<Evaluation>& evaluations) {
  std::vector<const Evaluation*> order;
  for (const Evaluation& evaluation : evaluations) order.push_back(&evaluation);
  std::stable_sort(order.begin(), order.end(), [](const Evaluation* a, const Evaluation* b) {
    return sort_key(*a) < sort_key(*b);
  });
  Table table({"problem", "sample", "backend", "verdict", "speedup", "95% interval", "flags"},
              "lrllrrl");
  for (const Evaluation* e : order) {
    std::string flags;
    for (const std::string& flag : e->flags) flags += (flags.empty() ? "" : ", ") + clean(flag);
    const bool interval =
        e->ci_low && e->ci_high && std::isfinite(*e->ci_low) && std::isfinite(*e->ci_high);
    table.add({clean(e->problem), std::to_string(e->sample), clean(e->backend), clean(e->verdict),
               factor(e->speedup),
               interval ? fmt::format("{:.2f}-{:.2f}", *e->ci_low, *e->ci_high) : "-", flags});
  }
  return "\n" + table.text();
}

}  // namespace

std::string to_text(const std::vector<Summary>& summaries,
                    const std::vector<Evaluation>& evaluations) {
  std::string result = scores(summaries);
  result += self_reports(evaluations);
  if (!summaries.empty()) result += passes(summaries[0]) + verdicts(summaries[0]);
  if (!evaluations.empty()) result += samples(evaluations);
  return result;
}

}  // namespace kb::score
