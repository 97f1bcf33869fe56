#include "prompt/feedback.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "build/log.h"
#include "prompt/fence.h"

namespace kb::prompt {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

bool is_error(std::string_view line) {
  for (const std::string_view mark : {"error:", "error :", "error   :", "undefined reference",
                                      "undefined symbol", "multiple definition", "ptxas fatal"})
    if (line.find(mark) != std::string_view::npos) return true;
  return line.starts_with("Error") || line.starts_with("fatal");
}

std::string shortened(std::string_view line, std::size_t max_bytes) {
  if (line.size() <= max_bytes) return std::string(line);
  std::size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;
  return std::string(line.substr(0, end)) + "…";
}

std::optional<double> number(const nlohmann::json& result, const char* key) {
  const auto found = result.find(key);
  if (found == result.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// On which kind of input it failed, and how many trials went well before.
std::string failed_trial(const nlohmann::json& result) {
  const auto trials = result.find("trials");
  if (trials == result.end() || !trials->is_array()) return {};
  std::size_t passed = 0;
  for (const auto& trial : *trials) {
    if (!trial.is_object() || !trial.value("counted", nlohmann::json(true)).is_boolean()) return {};
    const auto good = trial.find("passed"), kind = trial.find("kind");
    if (good == trial.end() || !good->is_boolean()) return {};
    if (!trial.value("counted", true)) continue;
    if (good->get<bool>()) {
      ++passed;
    } else if (kind != trial.end() && kind->is_string()) {
      const auto& name = kind->get_ref<const std::string&>();
      const bool plain =
          !name.empty() && name.size() <= 40 &&
          name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_- ") == std::string::npos;
      const std::string before = passed == 0 ? std::string("The first trial")
                                             : fmt::format("{} trial{} went well; the next one",
                                                           passed, passed == 1 ? "" : "s");
      return fmt::format("{} failed, on inputs of the kind `{}`.", before, plain ? name : "other");
    }
  }
  return {};
}

std::string time_text(double us) {
  if (us < 1000) return fmt::format("{:.1f} us", us);
  return us < 1e6 ? fmt::format("{:.3f} ms", us / 1000) : fmt::format("{:.3f} s", us / 1e6);
}

}  // namespace

std::string telling_part(std::string_view log, std::size_t max_lines, std::size_t max_line_bytes) {
  const auto lines = lines_of(log);
  const auto first_error = std::ranges::find_if(lines, is_error);
  const bool traceback = std::ranges::find_if(lines, [](std::string_view line) {
                           return line.starts_with("Traceback (most recent call last)");
                         }) != lines.end();
  std::size_t from = 0;
  if (first_error != lines.end() && !traceback) {
    from = static_cast<std::size_t>(first_error - lines.begin());
    if (from > 0) --from;
  } else if (lines.size() > max_lines) {
    // Of a traceback, the end says what it was; an extension's compiler errors stand in it.
    const auto compiler = std::ranges::find_if(lines, [](std::string_view line) {
      return line.find(": error:") != std::string_view::npos ||
             line.find("): error") != std::string_view::npos;
    });
    from = compiler != lines.end() ? static_cast<std::size_t>(compiler - lines.begin())
           : traceback             ? lines.size() - max_lines
                                   : 0;
  }
  const std::size_t to = std::min(lines.size(), from + max_lines);
  std::string text;
  if (from > 0) text += fmt::format("[{} line{} left out]\n", from, from == 1 ? "" : "s");
  for (std::size_t i = from; i < to; ++i) text += shortened(lines[i], max_line_bytes) + "\n";
  if (to < lines.size()) text += fmt::format("[{} more lines]\n", lines.size() - to);
  return text;
}

std::string details_of(const nlohmann::json& result) {
  std::string text;
  const auto message = result.find("message");
  if (message != result.end() && message->is_string())
    text = telling_part(build::clean_log(message->get_ref<const std::string&>(), {}));
  if (!text.empty()) text = fenced("", text);
  const std::string trial = failed_trial(result);
  if (!text.empty() && !trial.empty()) text += "\n\n";
  return text + trial;
}

std::string speed_of(const nlohmann::json& result) {
  std::string text;
  const auto time = number(result, "time_us"), reference = number(result, "reference_time_us"),
             speedup = number(result, "speedup"), least = number(result, "speed_of_light_us");
  if (time && reference)
    text +=
        fmt::format("One call takes {}, PyTorch's {}.\n", time_text(*time), time_text(*reference));
  if (speedup) {
    text += *speedup >= 1
                ? fmt::format("That is {:.3g} times as fast as PyTorch", *speedup)
                : fmt::format("That is slower than PyTorch: {:.3g} times its speed", *speedup);
    const auto interval = result.find("speedup_ci95");
    if (interval != result.end() && interval->is_array() && interval->size() == 2 &&
        (*interval)[0].is_number() && (*interval)[1].is_number())
      text += fmt::format(" (95 % interval {:.3g} to {:.3g})", (*interval)[0].get<double>(),
                          (*interval)[1].get<double>());
    text += ".\n";
  }
  if (least && *least > 0) {
    text += fmt::format(
        "Moving each input and output once and doing all operations takes about {} "
        "here",
        time_text(*least));
    if (time && *time > 0)
      text += *time > *least
                  ? fmt::format(": {:.3g} times that is what your kernel takes", *time / *least)
                  : std::string(": your kernel is at that limit");
    text += ".\n";
  }
  if (const auto error = number(result, "max_abs_error"))
    text += fmt::format("The largest absolute error was {:.3g}.\n", *error);
  return text.empty() ? text : text.substr(0, text.size() - 1);
}

std::string profile_of(const nlohmann::json& result) {
  const auto profile = result.find("profile");
  if (profile == result.end()) return {};
  std::string text;
  if (profile->is_string()) {
    text = profile->get<std::string>();
  } else if (profile->is_object()) {
    for (const auto& [name, value] : profile->items()) {
      if (!value.is_number() && !value.is_string()) continue;
      text += fmt::format("{}: {}\n", name,
                          value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  if (text.empty()) return {};
  return "The profiler says:\n\n" + fenced("", telling_part(build::clean_log(text, {}), 60));
}

}  // namespace kb::prompt
