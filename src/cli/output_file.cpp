#include "cli/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "build/files.h"
#include "cli/failure.h"
#include "cli/progress.h"

namespace kb::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw UsageError(fmt::format("{} cannot be written: {}", printable(path, false), reason));
}

// A device or a pipe: a file in the place of /dev/null would break the machine.
bool is_special(const fs::file_status& status) {
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

}  // namespace

void write_output_file(const std::string& path, const std::string& bytes) {
  const fs::path file(path);
  std::error_code error;
  const auto status = fs::status(file, error);
  if (fs::is_directory(status)) fail(path, "it is a folder");
  if (is_special(status)) {
    std::ofstream stream(file, std::ios::binary);
    if (!(stream << bytes << std::flush)) fail(path, "it takes no bytes");
    return;
  }
  const fs::path draft =
      file.parent_path() / fmt::format(".{}.{}", file.filename().string(), ::getpid());
  if (const auto written = build::write_file(draft, bytes, 0644, false); !written) {
    fs::remove(draft, error);
    fail(path, std::strerror(written.error()));
  }
  fs::rename(draft, file, error);
  if (!error) return;
  const std::string reason = error.message();
  fs::remove(draft, error);
  fail(path, reason);
}

void expect_output_folder(const std::string& path) {
  std::error_code error;
  if (is_special(fs::status(path, error))) return;
  const auto folder = fs::path(path).parent_path();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0)
    fail(path, std::strerror(errno));
}

}  // namespace kb::cli
