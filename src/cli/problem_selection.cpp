#include "cli/problem_selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "cli/failure.h"

namespace kb::cli {
namespace {

bool contains_text(std::string_view text, std::string_view part) {
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return !std::ranges::search(text, part, same).empty() || part.empty();
}

}  // namespace

void add_set_option(CLI::App& app, std::string& set) {
  app.add_option("--problems", set,
                 "the problem set: an imported one by name, or a folder; default: the bundled set");
}

void add_selection_options(CLI::App& app, SelectionFlags& flags) {
  add_set_option(app, flags.set);
  app.add_option("--level", flags.level, "only this level")->check(CLI::PositiveNumber);
  app.add_option(
      "--family", flags.family,
      fmt::format("only this family of operators: {}", fmt::join(problem::families(), ", ")));
  app.add_option("--name", flags.name, "only names and descriptions with this text");
  app.add_option("--subset", flags.subset, "only this subset of the set, such as representative");
}

Selection::Selection(const SelectionFlags& flags)
    : flags_(flags),
      root_(value_or_usage_error(problem::find_set(flags.set))),
      catalog_(value_or_usage_error(problem::Catalog::open(root_))) {
  if (!flags.family.empty() &&
      std::ranges::find(problem::families(), flags.family) == problem::families().end())
    throw UsageError(fmt::format("there is no family '{}'; the families are {}", flags.family,
                                 fmt::join(problem::families(), ", ")));
  if (!flags.subset.empty())
    for (auto& entry : value_or_usage_error(problem::load_subset(root_, flags.subset)))
      subset_.emplace(entry.id, std::move(entry.reason));
}

bool Selection::has(const problem::Catalog::Entry& entry) const {
  return (flags_.level == 0 || entry.id.level == flags_.level) &&
         (flags_.subset.empty() || subset_.contains(entry.id));
}

bool Selection::has(const problem::Catalog::Entry& entry, const problem::Problem& problem) const {
  return has(entry) && (flags_.family.empty() || problem.family == flags_.family) &&
         (contains_text(problem.name, flags_.name) || contains_text(problem.summary, flags_.name));
}

std::string Selection::reason(problem::Id id) const {
  const auto found = subset_.find(id);
  return found == subset_.end() ? std::string() : found->second;
}

}  // namespace kb::cli
