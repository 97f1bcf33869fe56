#include "profile/words.h"

#include <fmt/format.h>

#include <algorithm>

#include "profile/bound.h"
#include "profile/units.h"

namespace kb::profile {
namespace {

constexpr std::size_t kShownKernels = 8;
constexpr std::size_t kShownName = 90;
constexpr std::size_t kJsonLaunches = 50;

std::string title_of(const Side& side) {
  if (side.name == "reference") return "PyTorch";
  if (side.name == "compiled") return "torch.compile";
  return side.name;
}

std::string value_text(const Measure& measure, const std::optional<double>& value) {
  if (!value) return "-";
  if (measure.unit == "us") return time_text(*value);
  if (measure.unit == "bytes") return bytes_text(*value);
  if (measure.unit == "%") return fmt::format("{:.1f} %", *value);
  return measure.number == Number::waves ? fmt::format("{:.2f}", *value)
                                         : fmt::format("{:.0f}", *value);
}

std::string shortened(const std::string& name) {
  if (name.size() <= kShownName) return name;
  std::size_t end = kShownName;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return name.substr(0, end) + "…";
}

std::string table(const Profile& profile) {
  std::string text = fmt::format("{:<28}", "");
  std::string launches = fmt::format("{:<28}", "kernel launches in a call");
  for (const auto& side : profile.sides) {
    text += fmt::format("{:>16}", title_of(side));
    launches +=
        fmt::format("{:>16}", !side.counters ? std::string("-")
                                             : fmt::format("{}{}", side.counters->launches.size(),
                                                           side.cut_short ? "+" : ""));
  }
  text += '\n' + launches + '\n';
  for (const auto& measure : measures()) {
    const bool longest = measure.across == Across::longest;
    text += fmt::format("{:<28}", fmt::format("{}{}", measure.label, longest ? " *" : ""));
    for (const auto& side : profile.sides)
      text += fmt::format("{:>16}", side.counters
                                        ? value_text(measure, side.counters->total[measure.number])
                                        : std::string("-"));
    text += '\n';
  }
  return text + "  * of the kernel that takes longest; percentages are means over all, by time\n";
}

std::string lines_of(const Side& side) {
  std::string text;
  if (side.counters) {
    const auto kernels = kernels_of(*side.counters);
    for (std::size_t i = 0; i < std::min(kernels.size(), kShownKernels); ++i)
      text += fmt::format("  {:>12}  {:>4} x  {}\n", time_text(kernels[i].duration_us),
                          kernels[i].launches, shortened(kernels[i].name));
    if (kernels.size() > kShownKernels)
      text += fmt::format("  and {} more kernels\n", kernels.size() - kShownKernels);
  } else if (side.operators) {
    const auto& entries = side.operators->entries;
    for (std::size_t i = 0; i < std::min(entries.size(), kShownKernels); ++i)
      text += fmt::format("  {:>12}  {:>4g} x  {}\n", time_text(entries[i].time_us),
                          entries[i].calls, shortened(entries[i].name));
    if (entries.size() > kShownKernels)
      text += fmt::format("  and {} more\n", entries.size() - kShownKernels);
  }
  return text;
}

nlohmann::json json_of(const Numbers& numbers) {
  auto json = nlohmann::json::object();
  for (const auto& measure : measures())
    if (const auto& value = numbers[measure.number]) json[std::string(measure.key)] = *value;
  return json;
}

nlohmann::json json_of(const Side& side) {
  nlohmann::json json = {{"sentence", sentence_on(side)}, {"files", nlohmann::json::array()}};
  for (const auto& file : side.files) json["files"].push_back(file.string());
  if (!side.error.empty()) json["error"] = side.error;
  if (side.counters) {
    json["launches"] = side.counters->launches.size();
    json["cut_short"] = side.cut_short;
    json["total"] = json_of(side.counters->total);
    auto kernels = nlohmann::json::array();
    for (const auto& launch : side.counters->launches) {
      if (kernels.size() == kJsonLaunches) break;
      auto numbers = json_of(launch.numbers);
      numbers["name"] = launch.name;
      kernels.push_back(std::move(numbers));
    }
    json["kernels"] = std::move(kernels);
  }
  if (side.operators) {
    json["time_us"] = side.operators->time_us;
    auto operators = nlohmann::json::array();
    for (const auto& one : side.operators->entries)
      operators.push_back({{"name", one.name}, {"calls", one.calls}, {"time_us", one.time_us}});
    json["operators"] = std::move(operators);
  }
  return json;
}

}  // namespace

std::string sentence_on(const Side& side) {
  if (side.counters) return what_bounds(*side.counters);
  if (side.operators)
    return fmt::format("One call takes {} in all; {}", time_text(side.operators->time_us),
                       what_takes_longest(*side.operators));
  return fmt::format("Not profiled: {}.", side.error);
}

std::string in_words(const Profile& profile) {
  std::string text = fmt::format("profiler   {}\n", profile.profiler);
  if (!profile.obstacle.empty())
    text += fmt::format("           no counters: {}\n", profile.obstacle);
  if (std::ranges::any_of(profile.sides,
                          [](const auto& side) { return side.counters.has_value(); }))
    text += '\n' + table(profile);
  for (const auto& side : profile.sides)
    text += fmt::format("\n{:<14} {}\n{}", title_of(side), sentence_on(side), lines_of(side));
  std::string files;
  for (const auto& side : profile.sides)
    for (const auto& file : side.files) files += fmt::format("  {}\n", file.string());
  return files.empty() ? text : text + "\nkept\n" + files;
}

nlohmann::json to_json(const Profile& profile) {
  nlohmann::json json = {{"profiler", profile.profiler}, {"sides", nlohmann::json::object()}};
  if (!profile.obstacle.empty()) json["obstacle"] = profile.obstacle;
  for (const auto& side : profile.sides) {
    json[side.name] = sentence_on(side);
    if (side.counters)
      for (const auto& measure : measures())
        if (const auto& value = side.counters->total[measure.number])
          json[fmt::format("{}_{}", side.name, measure.key)] = *value;
    json["sides"][side.name] = json_of(side);
  }
  return json;
}

}  // namespace kb::profile
