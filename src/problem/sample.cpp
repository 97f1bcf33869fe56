#include "problem/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <tuple>

#include "problem/text_file.h"

namespace kb::problem {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 5> kSuffixes = {".py", ".cpp", ".cc", ".cu", ".hip"};

}  // namespace

std::optional<Sample> parse_sample_name(const fs::path& path) {
  const std::string name = path.filename().string();
  std::string_view rest = name;
  if (!take_prefix(rest, "level_")) return std::nullopt;
  const auto level = take_number(rest);
  if (!level || !take_prefix(rest, "_problem_")) return std::nullopt;
  const auto number = take_number(rest);
  if (!number || !take_prefix(rest, "_sample_")) return std::nullopt;
  const auto sample = take_number(rest);
  if (!sample || !take_prefix(rest, "_kernel")) return std::nullopt;
  if (std::ranges::find(kSuffixes, rest) == kSuffixes.end()) return std::nullopt;
  if (*level < 1 || *number < 1) return std::nullopt;
  return Sample{Id{*level, *number}, *sample, path};
}

std::expected<std::vector<Sample>, std::string> find_samples(const fs::path& folder) {
  const std::string shown = printable(folder.string());
  std::error_code error;
  if (!fs::exists(folder, error)) {
    return std::unexpected(
        fmt::format("there is no folder {}; give the folder that holds the samples", shown));
  }
  if (!fs::is_directory(folder, error)) {
    return std::unexpected(
        fmt::format("{} is not a folder; give the folder that holds the samples", shown));
  }
  std::vector<Sample> samples;
  fs::directory_iterator it(folder, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (auto sample = parse_sample_name(it->path()); sample && !it->is_directory(ignored)) {
      samples.push_back(std::move(*sample));
    }
  }
  if (error)
    return std::unexpected(fmt::format("the folder {} cannot be read: {}", shown, error.message()));
  if (samples.empty()) {
    return std::unexpected(
        fmt::format("{} holds no samples; they are named like "
                    "level_1_problem_19_sample_0_kernel.py (.cpp, .cc, .cu, .hip)",
                    shown));
  }
  const auto key = [](const Sample& s) { return std::tie(s.id, s.sample); };
  std::sort(samples.begin(), samples.end(), [&](const Sample& a, const Sample& b) {
    return key(a) != key(b) ? key(a) < key(b) : a.path < b.path;
  });
  const auto twin =
      std::adjacent_find(samples.begin(), samples.end(),
                         [&](const Sample& a, const Sample& b) { return key(a) == key(b); });
  if (twin != samples.end()) {
    return std::unexpected(fmt::format(
        "{} and {} are both sample {} of {}; move one of them away", printable(twin->path.string()),
        printable(std::next(twin)->path.filename().string()), twin->sample, twin->id.text()));
  }
  return samples;
}

}  // namespace kb::problem
