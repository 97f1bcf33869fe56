// What the cache needs of the file system. Failures are errno values: only the caller knows whose
// fault they are and what to advise.
//
// Build folders are written by hostile programs. The functions that read one never follow a
// symbolic link, never leave the folder, never block on a FIFO, and bound what they read.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <string_view>

#include "sandbox/unique_fd.h"

namespace kb::build {

/// A value, or errno.
template <class T>
using Io = std::expected<T, int>;

using FileDescriptor = sandbox::UniqueFd;

/// What a file holds.
struct Digest {
  std::uint64_t size = 0;
  std::string sha256;  ///< hex
  bool operator==(const Digest&) const = default;
};

/// Opens a folder; a symbolic link as its last part is refused.
Io<FileDescriptor> open_folder(const std::filesystem::path& path);

/// Opens the regular file `relative` below `folder` for reading. Refuses symbolic links at every
/// step (ELOOP, ENOTDIR), "..", absolute paths and anything but a regular file (EINVAL).
Io<FileDescriptor> open_beneath(int folder, const std::filesystem::path& relative);

/// False also where that cannot be told.
bool is_there(const std::filesystem::path& path);

/// The whole of a file. EFBIG when it is larger than `max_bytes`.
Io<std::string> read_file(int fd, std::uint64_t max_bytes);
Io<std::string> read_file(const std::filesystem::path& path, std::uint64_t max_bytes);

/// Reads a file to its end. EFBIG when it is larger than `max_bytes`.
Io<Digest> digest_file(int fd, std::uint64_t max_bytes);

/// Which side of a copy failed.
struct CopyError {
  int error = 0;
  bool reading = false;
};

/// Copies `from` (from its start) into a new file, synced, with exactly `mode`.
std::expected<Digest, CopyError> copy_file(int from, const std::filesystem::path& to, mode_t mode,
                                           std::uint64_t max_bytes);

/// Makes a new file with exactly `mode`; `sync` waits until the disk has it.
Io<void> write_file(const std::filesystem::path& path, std::string_view bytes, mode_t mode,
                    bool sync);

/// Removes a file or a tree, whatever modes and depth its maker gave it. A missing one is fine.
Io<void> remove_tree(const std::filesystem::path& path);

/// What a tree takes, counted until a limit is passed.
struct Usage {
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
};
Usage measure_tree(const std::filesystem::path& path, Usage limit);

/// True when the disk that holds `path` is about to be full.
bool disk_nearly_full(const std::filesystem::path& path);

}  // namespace kb::build
