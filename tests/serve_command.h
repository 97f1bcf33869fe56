// A process of `kernelbench serve` for many judgements with the same options: torch is imported and
// the reference loaded once.
#pragma once

#include <csignal>
#include <memory>
#include <utility>

#include "run_command.h"

namespace kb::test {

class Service {
 public:
  explicit Service(std::vector<std::string> options) : options_(std::move(options)) {
    std::signal(SIGPIPE, SIG_IGN);  // one that has died is a failed expectation
    std::array<int, 2> in{}, out{};
    if (::pipe(in.data()) != 0 || ::pipe(out.data()) != 0) throw std::runtime_error("pipe failed");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      for (const int fd : {in[0], in[1], out[0], out[1]}) ::close(fd);
      const std::string program = binary();
      std::vector<char*> argv = {const_cast<char*>(program.c_str()), const_cast<char*>("serve")};
      for (const auto& option : options_) argv.push_back(const_cast<char*>(option.c_str()));
      argv.push_back(nullptr);
      ::execvp(program.c_str(), argv.data());
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    requests_ = ::fdopen(in[1], "w");
    answers_ = ::fdopen(out[0], "r");
    read();  // it is ready
  }
  ~Service() {
    std::fclose(requests_);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::fclose(answers_);
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  const std::vector<std::string>& options() const { return options_; }

  /// Judges one, and returns the JSON object; a failed expectation when there is none.
  nlohmann::json judge(const std::string& problem, const std::string& candidate) {
    const nlohmann::json request = {
        {"id", ++asked_}, {"problem", problem}, {"candidate", candidate}};
    std::fputs((request.dump() + '\n').c_str(), requests_);
    std::fflush(requests_);
    auto json = nlohmann::json::parse(read(), nullptr, false);
    EXPECT_TRUE(json.is_object() && json.contains("verdict") && json["id"] == asked_) << json;
    return json.is_object() ? json : nlohmann::json::object();
  }

 private:
  std::string read() {
    std::string line;
    for (int c; (c = std::fgetc(answers_)) != EOF && c != '\n';) line += static_cast<char>(c);
    return line;
  }

  std::vector<std::string> options_;
  pid_t pid_ = -1;
  int asked_ = 0;
  std::FILE* requests_ = nullptr;
  std::FILE* answers_ = nullptr;
};

/// Judges with these options, in the service of the last call where they are the same. One lives at
/// a time, so that nothing runs beside what is timed.
inline nlohmann::json served_json(const std::vector<std::string>& options,
                                  const std::string& problem, const std::string& candidate) {
  static std::unique_ptr<Service> service;
  if (!service || service->options() != options) {
    service.reset();
    service = std::make_unique<Service>(options);
  }
  return service->judge(problem, candidate);
}

}  // namespace kb::test
