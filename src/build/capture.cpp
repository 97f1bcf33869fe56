#include "build/capture.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "build/files.h"

namespace kb::build {

std::expected<std::string, int> capture(std::vector<std::string> argv) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::unexpected(errno);
  const FileDescriptor reader(ends[0]);
  FileDescriptor writer(ends[1]);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, writer.get(), STDERR_FILENO);
  std::vector<char*> arguments;
  for (std::string& argument : argv) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  std::array<std::string, 2> variables{"PATH=/usr/bin:/bin", "LC_ALL=C"};
  std::array<char*, 3> environment{variables[0].data(), variables[1].data(), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawn(&child, argv[0].c_str(), &actions, nullptr, arguments.data(),
                                  environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  writer.reset();
  if (error != 0) return std::unexpected(error);

  std::string output;
  std::array<char, 4096> buffer{};
  ssize_t got = 0;
  while ((got = ::read(reader.get(), buffer.data(), buffer.size())) > 0 ||
         (got < 0 && errno == EINTR)) {
    if (got > 0) output.append(buffer.data(), static_cast<std::size_t>(got));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return std::unexpected(errno);
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::unexpected(0);
  return output;
}

}  // namespace kb::build
