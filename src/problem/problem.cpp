#include "problem/problem.h"

#include <fmt/format.h>

#include "problem/text_file.h"

namespace kb::problem {

std::expected<Problem, std::string> find(const std::string& argument, const std::string& set) {
  const auto in_set = [](const std::string& name, Id id) -> std::expected<Problem, std::string> {
    const auto root = find_set(name);
    if (!root) return std::unexpected(root.error());
    const auto catalog = Catalog::open(*root);
    if (!catalog) return std::unexpected(catalog.error());
    auto problem = catalog->load(id);
    if (problem && !name.empty()) problem->label = fmt::format("{}:{}", printable(name), id.text());
    return problem;
  };
  if (const auto id = parse_id(argument)) return in_set(set, *id);
  if (const auto colon = argument.rfind(':'); colon != std::string::npos && colon > 0)
    if (const auto id = parse_id(std::string_view(argument).substr(colon + 1)))
      return in_set(argument.substr(0, colon), *id);
  std::error_code error;
  if (!std::filesystem::exists(argument, error) && !error) {
    return std::unexpected(
        fmt::format("there is no problem or file '{}'; give an id like level1/19 (`kernelbench "
                    "problems list` shows them) or "
                    "the path of a problem file",
                    printable(argument)));
  }
  return load_file(argument);
}

}  // namespace kb::problem
