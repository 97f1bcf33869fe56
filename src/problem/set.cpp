#include "problem/set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "problem/installation.h"
#include "problem/text_file.h"

namespace kb::problem {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kBundled = "bundled";
constexpr std::size_t kMaxName = 100;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::vector<std::string> imported() {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(sets_root(), error), end; !error && it != end; it.increment(error))
    if (const auto name = it->path().filename().string(); is_set_name(name)) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

}  // namespace

fs::path data_root() {
  const char* data = std::getenv("XDG_DATA_HOME");
  if (data != nullptr && *data == '/') return fs::path(data) / "kernelbench";
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr ? home : "/") / ".local/share/kernelbench";
}

fs::path sets_root() {
  return data_root() / "sets";
}

bool is_set_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && is_alphanumeric(text.front()) &&
         text != kBundled && std::ranges::all_of(text, [](char c) {
           return is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
         });
}

std::expected<fs::path, std::string> find_set(const std::string& set) {
  if (set.empty() || set == kBundled) return bundled_root();
  std::error_code error;
  if (is_set_name(set))
    if (fs::path folder = sets_root() / set; fs::is_directory(folder, error)) return folder;
  if (fs::is_directory(set, error)) return fs::path(set);
  const auto names = imported();
  return std::unexpected(
      fmt::format("there is no problem set '{}': {} (`kernelbench problems import` makes one), and "
                  "there is no such folder",
                  printable(set),
                  names.empty() ? "nothing has been imported"
                                : fmt::format("the imported sets are {}", fmt::join(names, ", "))));
}

}  // namespace kb::problem
