// Nsight Compute: where it is, what it is told, and what its failures mean.
#pragma once

#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::profile {

struct Ncu {
  std::filesystem::path path;        ///< absolute
  std::vector<std::string> folders;  ///< its installation, which a sandbox must show
  std::string version;               ///< "2025.3.0.0"
};

/// Where it is looked for: the folders of PATH, $CUDA_HOME/bin, /usr/local/cuda/bin, and the newest
/// below /opt/nvidia/nsight-compute.
std::vector<std::filesystem::path> ncu_folders();

/// The first in `folders` that runs. Error: one sentence with how to get it.
std::expected<Ncu, std::string> find_ncu(const std::vector<std::filesystem::path>& folders);

/// The command line that profiles `program` between cudaProfilerStart and cudaProfilerStop, into
/// `report` (which ends in .ncu-rep).
std::vector<std::string> profiling_command(const Ncu& ncu, const std::filesystem::path& report,
                                           const std::vector<std::string>& program);
/// More launches than this in a call are not looked at.
inline constexpr std::size_t kMaxLaunches = 200;

/// The command line that prints the raw page of `report` into `page`.
std::vector<std::string> page_command(const Ncu& ncu, const std::filesystem::path& report,
                                      const std::filesystem::path& page);

/// What it prints where this user may not read counters.
inline constexpr std::string_view kPermissionError = "ERR_NVGPUCTRPERM";

/// Why Nsight Compute could not read counters, by what it printed, and what to do; empty where it
/// says no such thing.
std::string obstacle_in(std::string_view log);

/// True where the driver lets administrators alone read counters; `parameters` is the text of
/// /proc/driver/nvidia/params.
bool for_administrators_only(std::string_view parameters);

}  // namespace kb::profile
