#include "store/kernelbench_results.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace kb::store {
namespace {

namespace fs = std::filesystem;
// Keeps the order in which members are added: problems by number, and members as KernelBench writes
// them.
using Json = nlohmann::ordered_json;

// In every entry's metadata; by it a file is known as ours.
constexpr const char* kEvaluator = "kernelbench";

struct ProblemId {
  int level = 0;
  int number = 0;
};

std::optional<ProblemId> parse_problem(const std::string& text) {
  ProblemId id;
  int end = 0;
  // At most nine digits: an int holds them.
  if (std::sscanf(text.c_str(), "level%9d/%9d%n", &id.level, &id.number, &end) != 2)
    return std::nullopt;
  if (static_cast<std::size_t>(end) != text.size() || id.level < 1 || id.number < 1)
    return std::nullopt;
  return id;
}

// A member, or null when `json` is no object or has none.
const Json* member(const Json& json, const char* name) {
  if (!json.is_object()) return nullptr;
  const auto it = json.find(name);
  return it == json.end() ? nullptr : &*it;
}

std::optional<bool> boolean(const Json* json) {
  return json != nullptr && json->is_boolean() ? std::optional(json->get<bool>()) : std::nullopt;
}

std::string text(const Json* json) {
  return json != nullptr && json->is_string() ? json->get<std::string>() : "";
}

// Microseconds to milliseconds; -1, KernelBench's "not measured", for anything that is no time.
double milliseconds(const Json* json) {
  if (json == nullptr || !json->is_number()) return -1.0;
  const double us = json->get<double>();
  return std::isfinite(us) && us > 0 ? us / 1000 : -1.0;
}

// The name under which KernelBench's metadata holds the reason of a verdict.
const char* reason_name(const std::string& verdict, bool compiled) {
  if (!compiled) return "compilation_error";
  if (verdict == "wrong_value" || verdict == "wrong_shape" || verdict == "wrong_dtype")
    return "correctness_issue";
  return "runtime_error";
}

// Null when the row's JSON is bad.
std::optional<Json> entry_of(const Row& row) {
  const Json result = Json::parse(row.result_json, nullptr, /*allow_exceptions=*/false);
  if (!result.is_object()) return std::nullopt;
  const Json* rules = member(result, "public");
  auto compiled =
      rules != nullptr ? boolean(member(*rules, "compiled")) : boolean(member(result, "compiled"));
  auto correct =
      rules != nullptr ? boolean(member(*rules, "correct")) : boolean(member(result, "correct"));
  if (!compiled || !correct) return std::nullopt;

  const std::string verdict = text(member(result, "verdict"));
  const std::string message = text(member(result, "message"));
  const std::string device = text(member(result, "device"));
  Json metadata = {{"evaluator", kEvaluator},
                   {"hardware", device.empty() ? row.key.device : device},
                   {"device", device.empty() ? row.key.device : device},
                   {"verdict", verdict.empty() ? row.verdict : verdict}};
  if (const Json* flags = member(result, "flags"); flags != nullptr && flags->is_array())
    metadata["flags"] = *flags;
  if (!message.empty()) metadata[*correct ? "message" : reason_name(verdict, *compiled)] = message;

  const double runtime = *correct ? milliseconds(member(result, "time_us")) : -1.0;
  const double reference = milliseconds(member(result, "reference_time_us"));
  Json stats = Json::object();
  Json reference_stats = Json::object();
  // Ours are medians, and are called so.
  if (runtime > 0) {
    stats["median"] = runtime;
    if (const Json* trials = member(result, "trials"); trials != nullptr && trials->is_number())
      stats["num_trials"] = *trials;
  }
  if (reference > 0) reference_stats["median"] = reference;
  return Json{{"sample_id", row.key.sample}, {"compiled", *compiled},
              {"correctness", *correct},     {"metadata", metadata},
              {"runtime", runtime},          {"runtime_stats", stats},
              {"ref_runtime", reference},    {"ref_runtime_stats", reference_stats}};
}

// True for a file that write_kernelbench_results wrote.
bool is_ours(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  const Json json = Json::parse(bytes, nullptr, false);
  if (!json.is_object() || json.empty()) return false;
  for (const Json& entries : json) {
    if (!entries.is_array()) return false;
    for (const Json& entry : entries) {
      const Json* metadata = member(entry, "metadata");
      if (metadata == nullptr || text(member(*metadata, "evaluator")) != kEvaluator) return false;
    }
  }
  return true;
}

std::string failed(const fs::path& file, int error) {
  if (error == ENOSPC || error == EDQUOT) {
    return fmt::format(
        "the disk is full and {} cannot be written; free some space and run the same command again",
        file.string());
  }
  return fmt::format("{} cannot be written: {}; check its folder", file.string(),
                     std::strerror(error));
}

// Writes a file beside `file` and renames it. 0, or errno.
int replace_file(const fs::path& file, const std::string& bytes) {
  const fs::path draft =
      file.parent_path() / fmt::format(".{}.{}", file.filename().string(), getpid());
  // A draft of this name is of a dead process that had our number.
  ::unlink(draft.c_str());
  const int fd = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return errno;
  int error = 0;
  for (std::size_t done = 0; done < bytes.size() && error == 0;) {
    const ssize_t wrote = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (wrote >= 0) {
      done += static_cast<std::size_t>(wrote);
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  // Before the rename, or a power cut could leave the new name without its bytes.
  if (error == 0 && ::fsync(fd) != 0) error = errno;
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(draft.c_str(), file.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(draft.c_str());
  return error;
}

// Keeps a file that is not ours under another name that is free. Error: one sentence.
std::expected<std::optional<std::string>, std::string> move_aside(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error) || is_ours(file)) return std::nullopt;
  for (int n = 0;; ++n) {
    const std::string suffix = n == 0 ? ".original.json" : fmt::format(".original{}.json", n);
    const fs::path kept = file.parent_path() / (file.stem().string() + suffix);
    if (fs::exists(kept, error)) continue;
    fs::rename(file, kept, error);
    if (error) return std::unexpected(failed(kept, error.value()));
    return fmt::format("{} was written by another program and is kept as {}", file.string(),
                       kept.filename().string());
  }
}

}  // namespace

std::expected<WrittenResults, std::string> write_kernelbench_results(const fs::path& folder,
                                                                     const std::vector<Row>& rows) {
  WrittenResults written;
  // Level, number, sample: the order in the files.
  std::map<int, std::map<int, std::multimap<int, Json>>> levels;
  for (const Row& row : rows) {
    if (row.verdict == kInfrastructureError) continue;
    const auto id = parse_problem(row.key.problem);
    if (!id) {
      written.notes.push_back(fmt::format(
          "{} has no number in a level and is left out of eval_results.json", row.key.problem));
      continue;
    }
    auto entry = entry_of(row);
    if (!entry) {
      written.notes.push_back(fmt::format(
          "the stored result of {} sample {} cannot be read and is left out of eval_results.json",
          row.key.problem, row.key.sample));
      continue;
    }
    levels[id->level][id->number].emplace(row.key.sample, std::move(*entry));
  }

  for (const auto& [level, problems] : levels) {
    Json json = Json::object();
    for (const auto& [number, samples] : problems) {
      Json list = Json::array();
      for (const auto& [sample, entry] : samples) list.push_back(entry);
      json[std::to_string(number)] = std::move(list);
    }
    const fs::path file =
        folder / (levels.size() == 1 ? std::string("eval_results.json")
                                     : fmt::format("eval_results_level{}.json", level));
    auto moved = move_aside(file);
    if (!moved) return std::unexpected(moved.error());
    if (*moved) written.notes.push_back(**moved);
    // Bytes that are not UTF-8 are replaced rather than thrown about.
    const std::string bytes = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    if (const int error = replace_file(file, bytes); error != 0)
      return std::unexpected(failed(file, error));
    written.files.push_back(file);
  }
  // Written when the run had one level only; it would now contradict the files by level.
  const fs::path single = folder / "eval_results.json";
  std::error_code ignored;
  if (levels.size() > 1 && is_ours(single)) fs::remove(single, ignored);
  return written;
}

}  // namespace kb::store
