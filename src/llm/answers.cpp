#include "llm/answers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "llm/text.h"
#include "problem/text_file.h"

namespace kb::llm {
namespace {

namespace fs = std::filesystem;

// The largest answer that may be asked for has 32 MiB, and escapes can make six bytes of one.
constexpr std::uintmax_t kMaxRecordBytes = std::uintmax_t{256} << 20;

std::string dump(const nlohmann::json& json) {
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// Writes beside the target, waits for the disk, and renames: a reader and a crash see the old file
// or the new one.
std::expected<void, std::string> write_whole(const fs::path& path, std::string_view text) {
  const auto failed = [&](int error) {
    return std::unexpected(
        fmt::format("{} cannot be written: {}", one_line(path.string()), std::strerror(error)));
  };
  const fs::path beside = path.parent_path() / ("." + path.filename().string() + ".part");
  sandbox::UniqueFd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) return failed(errno);
  while (!text.empty()) {
    const ssize_t wrote = ::write(file.get(), text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const int error = errno;
      ::unlink(beside.c_str());
      return failed(error);
    }
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (::fsync(file.get()) != 0 || ::rename(beside.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(beside.c_str());
    return failed(error);
  }
  sandbox::UniqueFd folder(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder) ::fsync(folder.get());
  return {};
}

std::expected<nlohmann::json, std::string> read_json(const fs::path& file) {
  const std::string shown = one_line(file.string());
  std::error_code error;
  if (!fs::is_regular_file(file, error))
    return std::unexpected(fmt::format("{} is not a file", shown));
  if (fs::file_size(file, error) > kMaxRecordBytes)
    return std::unexpected(fmt::format("{} is too large for an answer's file", shown));
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::unexpected(fmt::format("{} cannot be read", shown));
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (stream.bad()) return std::unexpected(fmt::format("{} cannot be read", shown));
  auto parsed = parse_json(text);
  if (!parsed || !parsed->json.is_object())
    return std::unexpected(fmt::format("{} is damaged: it is not a JSON object", shown));
  return std::move(parsed->json);
}

// Where two configurations differ first: "temperature is 0.7 there and 1 here".
std::string first_difference(const nlohmann::json& there, const nlohmann::json& here,
                             const std::string& name = "") {
  if (there.is_object() && here.is_object()) {
    for (const auto* one : {&there, &here})
      for (const auto& [key, value] : one->items()) {
        const auto* a = member(there, key);
        const auto* b = member(here, key);
        if (a != nullptr && b != nullptr && *a == *b) continue;
        const nlohmann::json none;
        return first_difference(a != nullptr ? *a : none, b != nullptr ? *b : none, key);
      }
  }
  const auto shown = [](const nlohmann::json& value) {
    return value.is_null()
               ? std::string("not set")
               : one_line(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), 60);
  };
  return fmt::format("{} is {} there and {} now", name, shown(there), shown(here));
}

}  // namespace

nlohmann::json to_json(const Record& record) {
  nlohmann::json json = record.about;
  json["prompt_sha256"] = record.prompt_sha256;
  json.update(to_json(record.answer));
  return json;
}

std::expected<Record, std::string> parse_record(const nlohmann::json& json) {
  auto answer = parse_answer(json);
  if (!answer) return std::unexpected(answer.error());
  Record record{std::move(*answer), text_member(json, "prompt_sha256"), json};
  record.about.erase("prompt_sha256");
  const auto written = to_json(record.answer);
  for (const auto& [key, value] : written.items()) record.about.erase(key);
  return record;
}

std::expected<Record, std::string> read_record(const fs::path& file) {
  const auto json = read_json(file);
  if (!json) return std::unexpected(json.error());
  auto record = parse_record(*json);
  if (!record)
    return std::unexpected(
        fmt::format("{} is damaged: {}", one_line(file.string()), record.error()));
  return record;
}

std::expected<AnswerFolder, std::string> AnswerFolder::open(const fs::path& folder,
                                                            const nlohmann::json& configuration,
                                                            const std::string& file_name) {
  const std::string shown = one_line(folder.string());
  std::error_code error;
  fs::create_directories(folder / "answers", error);
  if (!error) fs::create_directories(folder / "prompts", error);
  if (error)
    return std::unexpected(fmt::format("the folder {} cannot be made: {}", shown, error.message()));
  sandbox::UniqueFd lock(
      ::open((folder / "answers" / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock)
    return std::unexpected(
        fmt::format("the folder {} cannot be written: {}", shown, std::strerror(errno)));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return std::unexpected(
        fmt::format("another kernelbench is asking for answers into {}: wait for its end, or use "
                    "another folder",
                    shown));
  AnswerFolder opened(folder, std::move(lock));
  const fs::path file = folder / file_name;
  if (fs::exists(file, error)) {
    const auto there = read_json(file);
    if (!there) return std::unexpected(there.error());
    // Both through text, so that numbers have one type.
    const auto here = nlohmann::json::parse(dump(configuration));
    if (*there != here)
      return std::unexpected(fmt::format(
          "{} holds answers to other settings ({}): use another folder, or the same settings",
          shown, first_difference(*there, here)));
    return opened;
  }
  if (auto written = write_whole(file, dump(configuration)); !written)
    return std::unexpected(written.error());
  return opened;
}

std::expected<std::optional<Record>, std::string> AnswerFolder::find(
    const std::string& name) const {
  const fs::path file = folder_ / "answers" / (name + ".json");
  std::error_code error;
  if (!fs::exists(file, error)) return std::nullopt;
  auto record = read_record(file);
  if (!record)
    return std::unexpected(
        fmt::format("{}; move it away to have its question asked again", record.error()));
  return std::move(*record);
}

std::expected<void, std::string> AnswerFolder::put(const std::string& name,
                                                   const Record& record) const {
  return write_whole(folder_ / "answers" / (name + ".json"), dump(to_json(record)));
}

std::expected<void, std::string> AnswerFolder::put_prompt(const std::string& name,
                                                          const nlohmann::json& prompt) const {
  return write_whole(folder_ / "prompts" / (name + ".json"), dump(prompt));
}

std::expected<void, std::string> AnswerFolder::put_file(const std::string& name,
                                                        std::string_view text) const {
  return write_whole(folder_ / name, text);
}

bool AnswerFolder::has_file(const std::string& name) const {
  std::error_code error;
  return fs::exists(folder_ / name, error);
}

}  // namespace kb::llm
