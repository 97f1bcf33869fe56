#include "exchange/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "build/scratch.h"
#include "problem/python_tokens.h"

namespace kb::exchange {
namespace fs = std::filesystem;
namespace {

using problem::Id;
using problem::printable;

constexpr std::size_t kMaxFileName = 120;
constexpr std::size_t kMaxWhere = 200;
constexpr int kMaxLevel = 99;
constexpr int kMaxNumber = 999'999;
constexpr std::uint64_t kHelperBytes = 8ull << 30;
constexpr std::uintmax_t kMaxRowsBytes = std::uintmax_t{1} << 30;
constexpr std::chrono::milliseconds kHelperLimit{600'000};

std::optional<std::int64_t> number_of(const nlohmann::json& row, const char* name) {
  const auto found = row.find(name);
  if (found == row.end()) return std::nullopt;
  if (found->is_number_integer()) return found->get<std::int64_t>();
  if (!found->is_string()) return std::nullopt;
  // "level_1", "level1", "1"
  const auto& text = found->get_ref<const std::string&>();
  std::string_view rest = text;
  problem::take_prefix(rest, "level");
  problem::take_prefix(rest, "_");
  const auto value = problem::take_number(rest);
  return value && rest.empty() ? std::optional<std::int64_t>(*value) : std::nullopt;
}

std::string text_of(const nlohmann::json& row, const char* name) {
  const auto found = row.find(name);
  return found != row.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// "19_Re LU.py" → 19 and "Re_LU".
std::pair<std::optional<int>, std::string> split_name(std::string_view name) {
  if (name.ends_with(".py")) name.remove_suffix(3);
  std::string_view rest = name;
  auto number = problem::take_number(rest);
  if (number && problem::take_prefix(rest, "_"))
    name = rest;
  else
    number = std::nullopt;
  std::string safe;
  for (const char c : name.substr(0, kMaxFileName)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-';
    safe += plain ? c : '_';
  }
  return {number, safe};
}

std::expected<Accepted, std::string> accept_one(const Row& row) {
  if (!row.problem.empty()) return std::unexpected(row.problem);
  auto [named, name] = split_name(row.name);
  const auto number = row.number ? row.number : std::optional<std::int64_t>(named);
  if (!row.level) return std::unexpected("it has no level");
  if (!number) return std::unexpected("it has no problem_id, and its name does not start with one");
  if (*row.level < 1 || *row.level > kMaxLevel)
    return std::unexpected(
        fmt::format("level {} is out of range: levels count from 1", *row.level));
  if (*number < 1 || *number > kMaxNumber)
    return std::unexpected(fmt::format("problem_id {} is out of range: ids count from 1", *number));
  if (row.code.empty()) return std::unexpected("it has no code");
  if (row.code.size() > problem::kMaxSourceBytes) return std::unexpected("its code is over 4 MiB");
  if (!problem::is_utf8(row.code) || row.code.find('\0') != std::string::npos)
    return std::unexpected("its code is not text");
  for (const char* needed : {"Model", "get_inputs"})
    if (!problem::may_bind(row.code, needed))
      return std::unexpected(fmt::format("its code defines no {}", needed));
  const Id id{static_cast<int>(*row.level), static_cast<int>(*number)};
  if (name.empty()) name = "problem";
  return Accepted{id, fmt::format("{}_{}.py", id.number, name), row.code,
                  problem::code_hash(row.code)};
}

std::expected<std::string, std::string> read_file(const fs::path& path, std::uintmax_t limit) {
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(path, error)) || fs::file_size(path, error) > limit ||
      error)
    return std::unexpected(fmt::format("{} is missing or too large", path.filename().string()));
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The last line that a helper printed, for a message.
std::string words_of(const std::string& output) {
  std::string_view text = output;
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (const auto end = text.rfind('\n'); end != text.npos) text.remove_prefix(end + 1);
  return text.empty() ? "the helper ended without a word" : printable(text.substr(0, 1000));
}

// Runs the helper on (from, to) in a sandbox that sees `from` and may write into the folder `work`.
std::expected<void, std::string> run_helper(const Environment& environment, const char* command,
                                            const fs::path& from, const fs::path& to,
                                            const fs::path& work) {
  sandbox::Command helper;
  helper.argv = {environment.python,
                 "-I",
                 "-B",
                 (environment.package_folder / "kernelbench_problems/__main__.py").string(),
                 command,
                 from.string(),
                 to.string()};
  helper.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                        {"HOME", "/tmp"},
                        {"TMPDIR", "/tmp"},
                        {"LC_ALL", "C.UTF-8"},
                        {"HF_HUB_OFFLINE", "1"},
                        {"HF_DATASETS_OFFLINE", "1"},
                        {"HF_HOME", "/tmp/huggingface"}};
  for (const auto& folder : environment.python_folders)
    helper.read_only.push_back({folder, "", true});
  helper.read_only.push_back({environment.package_folder.string(), "", false});
  helper.read_only.push_back({from.string(), "", false});
  helper.writable.push_back({work.string(), "", false});
  helper.limits.memory_bytes = kHelperBytes;
  helper.limits.max_file_bytes = helper.limits.tmpfs_bytes = kMaxRowsBytes;
  auto process = environment.launcher.start(helper);
  if (!process) return std::unexpected(process.error());
  const auto exit = process->wait(kHelperLimit);
  if (!exit)
    return std::unexpected(
        fmt::format("{} was not read within 10 minutes", printable(from.string())));
  if (!exit->exited || exit->code != 0) return std::unexpected(words_of(process->output()));
  return {};
}

}  // namespace

Import accept(std::span<const Row> rows) {
  Import import;
  std::map<Id, std::string> taken;
  std::map<std::string, Id> programs;
  for (const Row& row : rows) {
    const std::string where = printable(std::string_view(row.where).substr(0, kMaxWhere));
    auto accepted = accept_one(row);
    if (accepted)
      if (const auto [other, fresh] = taken.emplace(accepted->id, where); !fresh)
        accepted =
            std::unexpected(fmt::format("{} is {} already", accepted->id.text(), other->second));
    if (!accepted) {
      import.refused.push_back(fmt::format("{}: {}", where, accepted.error()));
      continue;
    }
    if (const auto [twin, fresh] = programs.emplace(accepted->hash, accepted->id); !fresh)
      import.duplicates.push_back(
          fmt::format("{} and {} are the same program", twin->second.text(), accepted->id.text()));
    import.accepted.push_back(std::move(*accepted));
  }
  std::ranges::sort(import.accepted, {}, &Accepted::id);
  return import;
}

namespace {

// The folders with problem files, and the level of each.
std::vector<std::pair<fs::path, int>> level_folders(const fs::path& folder,
                                                    std::optional<int> level) {
  std::vector<std::pair<fs::path, int>> folders;
  std::error_code error;
  if (level) return {{folder, *level}};
  if (const auto own = problem::parse_level_folder(fs::absolute(folder, error).lexically_normal()))
    return {{folder, *own}};
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (const auto found = problem::parse_level_folder(it->path());
        found && it->is_directory(error))
      folders.emplace_back(it->path(), *found);
  std::ranges::sort(folders);
  return folders;
}

std::vector<fs::path> python_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".py" && it->path().filename() != "__init__.py")
      files.push_back(it->path());
  std::ranges::sort(files);
  return files;
}

}  // namespace

bool is_problem_folder(const fs::path& folder, std::optional<int> level) {
  return std::ranges::any_of(level_folders(folder, level),
                             [](const auto& each) { return !python_files(each.first).empty(); });
}

std::expected<std::vector<Row>, std::string> rows_of_folder(const fs::path& folder,
                                                            std::optional<int> level) {
  std::vector<Row> rows;
  for (const auto& [place, its_level] : level_folders(folder, level))
    for (const auto& file : python_files(place)) {
      Row row{.where = file.lexically_relative(folder).string(),
              .level = its_level,
              .name = file.filename().string()};
      if (auto text = problem::read_text_file(file))
        row.code = std::move(*text);
      else
        row.problem = text.error();
      rows.push_back(std::move(row));
    }
  if (rows.empty())
    return std::unexpected(
        fmt::format("{} has no problem files; they are files like level1/19_ReLU.py in it",
                    printable(folder.string())));
  return rows;
}

std::expected<std::vector<Row>, std::string> parse_rows(std::string_view lines) {
  std::vector<Row> rows;
  while (!lines.empty()) {
    const auto end = std::min(lines.find('\n'), lines.size());
    const auto json = nlohmann::json::parse(lines.substr(0, end), nullptr, false);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (!json.is_object()) return std::unexpected(std::string("the helper's rows make no sense"));
    Row row{.where = text_of(json, "row"),
            .code = text_of(json, "code"),
            .level = number_of(json, "level"),
            .number = number_of(json, "problem_id"),
            .name = text_of(json, "name")};
    if (!row.level && !json.contains("level")) row.level = number_of(json, "split");
    rows.push_back(std::move(row));
  }
  return rows;
}

std::expected<std::vector<Row>, std::string> rows_of_dataset(const Environment& environment,
                                                             const fs::path& source) {
  const build::Scratch scratch;
  if (!scratch) return std::unexpected(std::string("no temporary folder can be made"));
  std::error_code error;
  const auto absolute = fs::canonical(source, error);
  if (error)
    return std::unexpected(
        fmt::format("{} cannot be read: {}", printable(source.string()), error.message()));
  const auto target = scratch.path() / "rows.jsonl";
  if (auto done = run_helper(environment, "read", absolute, target, scratch.path()); !done)
    return std::unexpected(done.error());
  const auto text = read_file(target, kMaxRowsBytes);
  if (!text) return std::unexpected(text.error());
  return parse_rows(*text);
}

std::expected<std::vector<Row>, std::string> rows_of_hub(const Environment& environment,
                                                         const std::string& name) {
  const build::Scratch scratch;
  if (!scratch) return std::unexpected(std::string("no temporary folder can be made"));
  // With the user's own network, proxies and credentials; files are written, none is opened.
  sandbox::Launcher plain(sandbox::Mode::none);
  sandbox::Command helper;
  helper.argv = {environment.python,
                 "-I",
                 "-B",
                 (environment.package_folder / "kernelbench_problems/__main__.py").string(),
                 "fetch",
                 name,
                 scratch.path().string()};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const auto equals = text.find('=');
    if (equals != text.npos)
      helper.environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  helper.limits.max_file_bytes = kMaxRowsBytes;
  auto process = plain.start(helper);
  if (!process) return std::unexpected(process.error());
  const auto exit = process->wait(kHelperLimit);
  if (!exit)
    return std::unexpected(fmt::format("{} was not downloaded within 10 minutes", printable(name)));
  if (!exit->exited || exit->code != 0) return std::unexpected(words_of(process->output()));
  return rows_of_dataset(environment, scratch.path());
}

std::expected<void, std::string> write_set(const Import& import, const fs::path& folder) {
  const build::Scratch scratch(folder.parent_path());
  if (!scratch)
    return std::unexpected(
        fmt::format("{} cannot be written to", printable(folder.parent_path().string())));
  const auto staged = scratch.path() / "set";
  std::error_code error;
  for (const auto& accepted : import.accepted) {
    const auto place = staged / fmt::format("level{}", accepted.id.level);
    fs::create_directories(place, error);
    std::ofstream file(place / accepted.file_name, std::ios::binary);
    file << accepted.code;
    if (!file.flush())
      return std::unexpected(
          fmt::format("{} cannot be written", printable((place / accepted.file_name).string())));
  }
  fs::rename(staged, folder, error);
  if (error)
    return std::unexpected(
        fmt::format("{} cannot be made: {}", printable(folder.string()), error.message()));
  return {};
}

std::expected<void, std::string> write_dataset(const Environment& environment,
                                               std::span<const problem::Problem> problems,
                                               const fs::path& target) {
  std::error_code error;
  const auto absolute = fs::absolute(target, error).lexically_normal();
  const bool one_file = absolute.extension() == ".parquet";
  if (!one_file && fs::exists(absolute / "data", error))
    return std::unexpected(fmt::format("{} has a folder data already", printable(target.string())));
  const build::Scratch scratch(absolute.parent_path());
  if (!scratch)
    return std::unexpected(
        fmt::format("{} cannot be written to", printable(absolute.parent_path().string())));
  const build::Scratch input;
  if (!input) return std::unexpected(std::string("no temporary folder can be made"));
  {
    std::ofstream rows(input.path() / "rows.jsonl");
    for (const auto& problem : problems)
      rows << nlohmann::json{{"code", problem.source},
                             {"level", problem.id->level},
                             {"name", problem.path.stem().string()},
                             {"problem_id", problem.id->number}}
                  .dump()
           << '\n';
    if (!rows.flush()) return std::unexpected(std::string("the rows cannot be written"));
  }
  const auto made = scratch.path() / (one_file ? "set.parquet" : "set");
  if (auto done =
          run_helper(environment, "write", input.path() / "rows.jsonl", made, scratch.path());
      !done)
    return done;
  if (!one_file) fs::create_directories(absolute, error);
  if (one_file)
    fs::rename(made, absolute, error);
  else
    fs::rename(made / "data", absolute / "data", error);
  if (error)
    return std::unexpected(
        fmt::format("{} cannot be written: {}", printable(target.string()), error.message()));
  return {};
}

}  // namespace kb::exchange
