#include "build/compiler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "build/files.h"

namespace kb::build {

namespace fs = std::filesystem;

namespace {

constexpr int kNewestVersion = 20;
constexpr int kOldestVersion = 10;  // the first with -std=c++20

// Runs a trusted program with an empty environment. Error: errno, or 0 when it failed itself.
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

fs::path search() {
  std::vector<std::string> names{"g++"};
  for (int version = kNewestVersion; version >= kOldestVersion; --version) {
    names.push_back(fmt::format("g++-{}", version));
  }
  for (const std::string& name : names) {
    for (const char* folder : {"/usr/local/bin", "/usr/bin", "/bin"}) {
      fs::path path = fs::path(folder) / name;
      if (::access(path.c_str(), X_OK) == 0) return path;
    }
  }
  return {};
}

}  // namespace

const std::vector<std::string>& cpp_flags() {
  // -fno-gnu-unique: a library with unique symbols can never be unloaded, and shares them.
  // -z defs: a forgotten function is an error here, with its name, and not when it is loaded.
  // Symbols stay visible by default: `extern "C" int kb_run` must do without KB_EXPORT.
  static const std::vector<std::string> flags{"-std=c++20",
                                              "-O3",
                                              "-march=native",
                                              "-fopenmp",
                                              "-fPIC",
                                              "-shared",
                                              "-pipe",
                                              "-fno-gnu-unique",
                                              "-Wl,-z,defs",
                                              "-Wl,-z,relro,-z,now",
                                              "-fdiagnostics-color=never",
                                              "-fmax-errors=50"};
  return flags;
}

std::expected<Compiler, std::string> find_compiler(const fs::path& wanted) {
  const fs::path path = wanted.empty() ? search() : wanted;
  if (path.empty()) {
    return std::unexpected("no C++ compiler was found: install the package g++, then try again");
  }
  // -### prints the commands that it would run: the version, how it was configured, the folders
  // that it searches, and -march=native written out.
  std::vector<std::string> argv{path.string()};
  argv.insert(argv.end(), cpp_flags().begin(), cpp_flags().end());
  for (const char* argument : {"-###", "-E", "-x", "c++", "/dev/null"}) argv.push_back(argument);
  auto description = capture(argv);
  if (!description) {
    const std::string why =
        description.error() == 0
            ? "it does not accept the flags of g++"
            : std::error_code(description.error(), std::generic_category()).message();
    return std::unexpected(
        fmt::format("cannot use the C++ compiler {} ({}): install the package g++, then try again",
                    path.string(), why));
  }
  std::error_code error;
  const fs::path resolved = fs::canonical(path, error);
  return Compiler{path, fmt::format("{}\n{}\nglibc {}\n{}", path.string(), resolved.string(),
                                    ::gnu_get_libc_version(), *description)};
}

}  // namespace kb::build
