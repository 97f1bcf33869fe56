#include "problem/installation.h"

#include <cstdlib>
#include <system_error>

#ifndef KERNELBENCH_SOURCE_DIR
#define KERNELBENCH_SOURCE_DIR "."
#endif

namespace kb::problem {

std::filesystem::path installation_root(const char* home, const std::filesystem::path& executable) {
  namespace fs = std::filesystem;
  if (home != nullptr && *home != '\0') return fs::path(home);
  const fs::path folder = executable.parent_path();
  if (!folder.empty()) {
    for (const fs::path& root : {folder / ".." / "..", folder / ".." / "share" / "kernelbench"}) {
      std::error_code error;
      if (fs::is_directory(root / "problems", error)) {
        // Canonical: this path is shown to people, and bound into sandboxes.
        const fs::path canonical = fs::canonical(root, error);
        return error ? root.lexically_normal() : canonical;
      }
    }
  }
  return fs::path(KERNELBENCH_SOURCE_DIR);
}

std::filesystem::path installation_root() {
  std::error_code error;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", error);
  return installation_root(std::getenv("KERNELBENCH_HOME"),
                           error ? std::filesystem::path{} : executable);
}

std::filesystem::path bundled_root() {
  return installation_root() / "problems";
}

}  // namespace kb::problem
