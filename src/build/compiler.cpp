#include "build/compiler.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <unistd.h>

#include <system_error>

#include "build/capture.h"

namespace kb::build {

namespace fs = std::filesystem;

namespace {

constexpr int kNewestVersion = 20;
constexpr int kOldestVersion = 10;  // the first with -std=c++20

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
  const std::string where =
      fmt::format("{}\n{}\nglibc {}\n", path.string(), resolved.string(), ::gnu_get_libc_version());
  // The commands begin below the line with the version.
  const std::size_t version = description->find("gcc version ");
  const std::size_t end = version == std::string::npos ? version : description->find('\n', version);
  return Compiler{path, where + *description, where + description->substr(0, end)};
}

}  // namespace kb::build
