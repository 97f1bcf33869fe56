#include "problem/problem.h"

#include <fmt/format.h>

#include "problem/text_file.h"

namespace kb::problem {

std::expected<Problem, std::string> find(const std::string& argument) {
  if (const auto id = parse_id(argument)) {
    const auto catalog = Catalog::open(bundled_root());
    if (!catalog) return std::unexpected(catalog.error());
    return catalog->load(*id);
  }
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
