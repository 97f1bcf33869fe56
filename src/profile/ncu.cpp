#include "profile/ncu.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>
#include <system_error>

#include "build/capture.h"
#include "build/nvcc.h"
#include "profile/launch.h"
#include "profile/operators.h"

namespace kb::profile {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxWords = 400;
constexpr const char* kInstallations = "/opt/nvidia/nsight-compute";

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// The number in "ncu-2025.3.0" or "2025.3.0", to be compared: 2024.10 is newer than 2024.9.
std::vector<int> numbers_in(std::string_view name) {
  std::vector<int> numbers;
  bool within = false;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !within) numbers.push_back(0);
    if (digit) numbers.back() = numbers.back() * 10 + (c - '0');
    within = digit;
  }
  return numbers;
}

// Newest first.
std::vector<fs::path> installations_in(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().native().starts_with(prefix) && is_folder(it->path()))
      found.push_back(it->path());
  std::ranges::sort(found, std::greater(),
                    [](const fs::path& path) { return numbers_in(path.filename().native()); });
  return found;
}

// "ncu" of a toolkit is a script that looks for the newest installation beside the toolkit's bin/,
// or in /opt/nvidia.
std::vector<std::string> folders_of(const fs::path& ncu) {
  std::error_code error;
  const fs::path folder = fs::canonical(ncu, error).parent_path();
  if (error) return {};
  std::vector<std::string> folders = {folder.string()};
  for (const auto& one : installations_in(folder.parent_path(), "nsight-compute"))
    folders.push_back(one.string());
  if (is_folder(kInstallations)) folders.emplace_back(kInstallations);
  return folders;
}

// "… Version 2025.3.0.0 (build 36273991) …"
std::string version_in(const std::string& words) {
  constexpr std::string_view kWord = "Version ";
  const std::size_t at = words.find(kWord);
  if (at == words.npos) return {};
  const std::size_t from = at + kWord.size();
  return words.substr(from,
                      std::min(words.find_first_not_of("0123456789.", from), from + 20) - from);
}

}  // namespace

std::vector<fs::path> ncu_folders() {
  auto folders = build::path_folders();
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home == '/')
    folders.push_back(fs::path(home) / "bin");
  folders.emplace_back("/usr/local/cuda/bin");
  std::ranges::copy(installations_in(kInstallations, ""), std::back_inserter(folders));
  return folders;
}

std::expected<Ncu, std::string> find_ncu(const std::vector<fs::path>& folders) {
  std::string why = "Nsight Compute (ncu) was not found";
  std::set<fs::path> seen;
  for (const fs::path& folder : folders) {
    const fs::path path = folder / "ncu";
    if (!seen.insert(path).second || ::access(path.c_str(), X_OK) != 0) continue;
    const auto words = build::capture({path.string(), "--version"});
    std::string version = words ? version_in(*words) : std::string();
    if (!version.empty()) return Ncu{path, folders_of(path), std::move(version)};
    why = fmt::format("{} does not run", path.string());
  }
  return std::unexpected(
      fmt::format("{}: it comes with the CUDA toolkit (package cuda-nsight-compute-13-0 or "
                  "nsight-compute), and is looked for in PATH, in the folder that CUDA_HOME names "
                  "and in {}",
                  why, kInstallations));
}

std::vector<std::string> profiling_command(const Ncu& ncu, const fs::path& report,
                                           const std::vector<std::string>& program) {
  std::vector<std::string> command = {ncu.path.string(),
                                      "--clock-control",
                                      "none",
                                      "--profile-from-start",
                                      "off",
                                      "--launch-count",
                                      fmt::format("{}", kMaxLaunches),
                                      "--metrics",
                                      metric_list(),
                                      "--force-overwrite",
                                      "--export",
                                      report.string()};
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

std::vector<std::string> page_command(const Ncu& ncu, const fs::path& report,
                                      const fs::path& page) {
  // Into a file: what a sandbox prints is kept in part only.
  return {"/bin/sh",
          "-c",
          "out=$1; shift; exec \"$@\" >\"$out\"",
          "sh",
          page.string(),
          ncu.path.string(),
          "--import",
          report.string(),
          "--csv",
          "--page",
          "raw",
          "--print-units",
          "base"};
}

std::string obstacle_in(std::string_view log) {
  const auto says = [&](std::string_view words) { return log.find(words) != log.npos; };
  if (says(kPermissionError))
    return "the NVIDIA driver lets only administrators read a GPU's counters, and nothing in a "
           "sandbox is one: allow everybody to (`echo options nvidia "
           "NVreg_RestrictProfilingToAdminUsers=0 > /etc/modprobe.d/profiling.conf`, then load the "
           "driver anew or reboot); or, for code that you trust, run this as root with "
           "`--sandbox none`";
  if (says("driver resource") || says("Driver resource") || says("performance monitor"))
    return "another program holds the GPU's counters (DCGM's monitoring, or another profiler): "
           "stop it (`dcgmi profiling --pause`) and try again";
  if (says("not supported on") || says("unsupported GPU") || says("is not supported by"))
    return "this version of Nsight Compute does not support the GPU: install a newer one";
  // Whatever else it calls an error, but for the end of the program, which that tells better.
  constexpr std::string_view kError = "==ERROR== ";
  for (std::size_t at = 0; (at = log.find(kError, at)) != log.npos;) {
    at += kError.size();
    const auto line = log.substr(at, log.find('\n', at) - at);
    if (!line.starts_with("The application "))
      return "Nsight Compute says: " + clean(line, kMaxWords);
  }
  return {};
}

bool for_administrators_only(std::string_view parameters) {
  constexpr std::string_view kName = "RmProfilingAdminOnly:";
  const std::size_t at = parameters.find(kName);
  if (at == parameters.npos) return false;
  const std::size_t value = parameters.find_first_not_of(" \t", at + kName.size());
  return value != parameters.npos && parameters[value] == '1';
}

}  // namespace kb::profile
