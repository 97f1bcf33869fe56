#include "problem/problem_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "problem/code_hash.h"
#include "problem/family.h"
#include "problem/python_tokens.h"
#include "problem/text_file.h"

namespace kb::problem {

std::optional<ProblemFileName> parse_problem_file_name(const std::filesystem::path& file) {
  if (file.extension() != ".py") return std::nullopt;
  const std::string stem = file.stem().string();
  std::string_view rest = stem;
  const auto number = take_number(rest);
  if (!number || *number < 1 || !take_prefix(rest, "_") || rest.empty()) return std::nullopt;
  ProblemFileName result{*number, std::string(rest)};
  std::replace(result.name.begin(), result.name.end(), '_', ' ');
  return result;
}

std::optional<int> parse_level_folder(const std::filesystem::path& folder) {
  const std::string name = folder.filename().string();
  std::string_view rest = name;
  if (!take_prefix(rest, "level")) return std::nullopt;
  const auto level = take_number(rest);
  if (!level || *level < 1 || !rest.empty()) return std::nullopt;
  return level;
}

std::expected<Problem, std::string> load_file(const std::filesystem::path& path) {
  auto source = read_text_file(path);
  if (!source) return std::unexpected(source.error());
  const std::string shown = printable(path.string());
  const auto not_a_problem = [&shown](std::string_view why) {
    return std::unexpected(
        fmt::format("{} is not a problem: it defines no {}; see docs/problems.md", shown, why));
  };
  if (!may_bind(*source, "Model")) return not_a_problem("class Model");
  if (!may_bind(*source, "get_inputs")) return not_a_problem("get_inputs()");

  Problem problem;
  std::error_code error;
  problem.path = std::filesystem::absolute(path, error).lexically_normal();
  if (error) problem.path = path;
  const auto named = parse_problem_file_name(problem.path);
  if (named) {
    problem.name = named->name;
    if (const auto level = parse_level_folder(problem.path.parent_path()))
      problem.id = Id{*level, named->number};
  } else {
    problem.name = problem.path.stem().string();
    std::replace(problem.name.begin(), problem.name.end(), '_', ' ');
  }
  problem.label = problem.id ? problem.id->text() : path.string();
  problem.summary = docstring_summary(*source);
  problem.altered = printable(string_constant(*source, "ALTERED"));
  problem.family = family_of(problem.name, *source);
  problem.hash = code_hash(*source);
  problem.source = std::move(*source);
  return problem;
}

}  // namespace kb::problem
