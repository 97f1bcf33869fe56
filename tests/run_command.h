// Runs the real binary, and collects what it says.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kb::test {

struct Outcome {
  int code = -1;
  std::string out, err;
};

/// Runs `program` with `arguments` (no shell); stdout and stderr go through files, so that neither
/// can block.
inline Outcome run_program(const std::string& program, const std::vector<std::string>& arguments,
                           const std::string& folder = "") {
  std::array<std::FILE*, 2> files = {std::tmpfile(), std::tmpfile()};
  const pid_t child = ::fork();
  if (child == 0) {
    if (!folder.empty() && ::chdir(folder.c_str()) != 0) ::_exit(126);
    ::dup2(::fileno(files[0]), 1);
    ::dup2(::fileno(files[1]), 2);
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execvp(program.c_str(), argv.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  for (int i = 0; i < 2; ++i) {
    std::rewind(files[i]);
    std::array<char, 4096> buffer;
    for (std::size_t got; (got = std::fread(buffer.data(), 1, buffer.size(), files[i])) > 0;)
      (i == 0 ? outcome.out : outcome.err).append(buffer.data(), got);
    std::fclose(files[i]);
  }
  return outcome;
}

/// The tested binary: the one that was built beside the test, unless the environment names another
/// (a build that was carried to a machine with a GPU).
inline std::string binary() {
  const char* other = std::getenv("KERNELBENCH_BINARY");
  return other != nullptr ? other : KERNELBENCH_BINARY;
}

inline std::string source_folder() {
  const char* other = std::getenv("KERNELBENCH_SOURCE_DIR");
  return other != nullptr ? other : KERNELBENCH_SOURCE_DIR;
}

inline Outcome kernelbench(const std::vector<std::string>& arguments) {
  return run_program(binary(), arguments);
}

/// A folder that is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "kernelbench-test-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::filesystem::path path() const { return path_; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

/// Evaluates and returns the JSON object; a failed expectation when there is none.
inline nlohmann::json eval_json(const std::string& problem, const std::string& candidate,
                                std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"eval", problem, candidate, "--json"};
  if (std::ranges::find(more, "--size") == more.end())
    arguments.insert(arguments.end(), {"--size", "small"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto outcome = kernelbench(arguments);
  auto json = nlohmann::json::parse(outcome.out, nullptr, false);
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_TRUE(json.is_object()) << outcome.err << outcome.out;
  return json.is_object() ? json : nlohmann::json::object();
}

/// Verdict and message in one string, for readable failures.
inline std::string verdict_of(const nlohmann::json& json) {
  return json.value("verdict", std::string("(none)"));
}

inline bool has_flag(const nlohmann::json& json, const std::string& flag) {
  for (const auto& one : json.value("flags", nlohmann::json::array()))
    if (one == flag) return true;
  return false;
}

}  // namespace kb::test
