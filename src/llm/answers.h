// The folder of a run of questions. Everything that was paid for is on the disk before the next
// thing happens:
//
//   DIR/generate.json                                  the configuration
//   DIR/prompts/level_1_problem_19.json                what was asked
//   DIR/answers/level_1_problem_19_sample_0.json       what came back, raw
//   DIR/level_1_problem_19_sample_0_kernel.cu          the code in it
//
// Each file appears whole or not at all. One process at a time works in a folder.
#pragma once

#include <expected>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "llm/answer.h"
#include "sandbox/unique_fd.h"

namespace kb::llm {

/// One answer as it is kept.
struct Record {
  Answer answer;
  std::string prompt_sha256;
  nlohmann::json about = nlohmann::json::object();  ///< the caller's members: problem, code …
};
nlohmann::json to_json(const Record& record);
std::expected<Record, std::string> parse_record(const nlohmann::json& json);
/// Reads one file. Error: one sentence that names it.
std::expected<Record, std::string> read_record(const std::filesystem::path& file);

/// May be used by many threads at a time, for different names.
class AnswerFolder {
 public:
  /// Makes or opens the folder. `configuration`, kept as `file`, is what must not change from one
  /// run to the next in it. Error: one sentence (another process works in it; its configuration is
  /// another: says which member; it cannot be written).
  static std::expected<AnswerFolder, std::string> open(const std::filesystem::path& folder,
                                                       const nlohmann::json& configuration,
                                                       const std::string& file = "generate.json");

  /// The answer kept under a name; none when there is none. Error: the file is damaged.
  std::expected<std::optional<Record>, std::string> find(const std::string& name) const;
  /// On the disk when it returns. Error: one sentence; what was there before still is.
  std::expected<void, std::string> put(const std::string& name, const Record& record) const;
  std::expected<void, std::string> put_prompt(const std::string& name,
                                              const nlohmann::json& prompt) const;
  /// A file beside the folders, `name` with its suffix.
  std::expected<void, std::string> put_file(const std::string& name, std::string_view text) const;
  bool has_file(const std::string& name) const;

 private:
  AnswerFolder(std::filesystem::path folder, sandbox::UniqueFd lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}

  std::filesystem::path folder_;
  sandbox::UniqueFd lock_;
};

}  // namespace kb::llm
