#include "profile/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "build/log.h"
#include "problem/text_file.h"

namespace kb::profile {
namespace {

constexpr std::size_t kMaxEntries = 100;
constexpr std::size_t kMaxName = 400;
constexpr std::size_t kMaxError = 2000;

std::optional<double> number_of(const nlohmann::json& entry, const char* name) {
  const auto found = entry.find(name);
  if (found == entry.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) && value >= 0 ? std::optional(value) : std::nullopt;
}

std::string text_of(const nlohmann::json& entry, const char* name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

std::string clean(std::string_view text, std::size_t max_bytes) {
  std::string line = problem::printable(build::clean_log(text, {}, max_bytes));
  // Two bytes of UTF-8 that some terminals take for an escape (U+0080 to U+009F).
  for (std::size_t i = 0; i + 1 < line.size(); ++i)
    if (line[i] == '\xC2' && static_cast<unsigned char>(line[i + 1]) < 0xA0)
      line.replace(i, 2, "?");
  return line;
}

std::string error_in(const nlohmann::json& answer) {
  if (!answer.is_object()) return "the profiled process gave no answer";
  if (const auto ok = answer.find("ok"); ok != answer.end() && ok->is_boolean() && ok->get<bool>())
    return {};
  const auto error = answer.find("error");
  std::string text;
  if (error != answer.end() && error->is_object()) text = text_of(*error, "text");
  // Of a traceback the end says what it was.
  while (text.ends_with('\n')) text.pop_back();
  if (const auto line = text.rfind('\n'); line != text.npos) text.erase(0, line + 1);
  text = clean(text, kMaxError);
  return text.empty() ? "the profiled process failed and does not say why" : text;
}

std::expected<Operators, std::string> parse_operators(const nlohmann::json& answer) {
  if (auto error = error_in(answer); !error.empty()) return std::unexpected(std::move(error));
  const auto bad = [](const char* why) {
    return std::unexpected(fmt::format("the profiled process's answer makes no sense: {}", why));
  };
  const auto entries = answer.find("operators");
  if (entries == answer.end() || !entries->is_array()) return bad("it has no list of operators");
  const auto total = number_of(answer, "time_us");
  if (!total) return bad("it has no time");
  Operators operators{{}, *total};
  for (const auto& entry : *entries) {
    if (operators.entries.size() == kMaxEntries) break;
    if (!entry.is_object()) return bad("an operator is not an object");
    const auto calls = number_of(entry, "calls"), time = number_of(entry, "time_us");
    if (!calls || !time) return bad("an operator has no number of calls or no time");
    operators.entries.push_back({clean(text_of(entry, "name"), kMaxName), *calls, *time});
  }
  std::ranges::stable_sort(operators.entries, std::greater(), &Operator::time_us);
  return operators;
}

std::string what_takes_longest(const Operators& operators) {
  if (operators.entries.empty() || operators.time_us <= 0) return "PyTorch's profiler saw nothing.";
  const auto& first = operators.entries.front();
  return fmt::format("{:.0f} % of the time is in {}.",
                     std::min(first.time_us / operators.time_us, 1.0) * 100,
                     first.name.substr(0, 100));
}

}  // namespace kb::profile
