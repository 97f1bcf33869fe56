// Keys: from the environment, or from a file .env of the current folder. They go into request
// headers and nowhere else; no message here ever quotes a value.
#pragma once

#include <expected>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kb::llm {

/// KEY=VALUE lines; `export ` before them, quotes around the value, comments and blank lines are
/// fine. Error: one sentence with the line's number and nothing of its text.
std::expected<std::map<std::string, std::string>, std::string> parse_dotenv(std::string_view text);

class Secrets {
 public:
  using Environment = std::function<const char*(const char* name)>;

  /// Reads `folder`/.env, if there is one. Error: one sentence.
  static std::expected<Secrets, std::string> load(const std::filesystem::path& folder,
                                                  Environment environment);
  Secrets(Environment environment, std::map<std::string, std::string> file)
      : environment_(std::move(environment)), file_(std::move(file)) {}

  /// The value of the first of `names` that is set and not empty, the environment before the file;
  /// empty when none is. Error: one sentence, when the value cannot be a key (white space or
  /// control characters, which would also end a header).
  std::expected<std::string, std::string> find(std::span<const std::string> names) const;

 private:
  Environment environment_;
  std::map<std::string, std::string> file_;
};

}  // namespace kb::llm
