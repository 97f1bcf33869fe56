// Locks between processes (and threads) that end with their holder, however it ends: flock(2).
#pragma once

#include <filesystem>

#include "build/files.h"

namespace kb::build {

/// Holds a lock on a file until destroyed.
///
/// A holder of an exclusive lock may remove the file: whoever waited for it notices that the name
/// now means another file, and starts again with that one.
class FileLock {
 public:
  /// Waits. The file is made if missing.
  static Io<FileLock> shared(const std::filesystem::path& path);
  static Io<FileLock> exclusive(const std::filesystem::path& path);
  /// EWOULDBLOCK when somebody else holds it.
  static Io<FileLock> try_exclusive(const std::filesystem::path& path);

  int fd() const { return fd_.get(); }

 private:
  explicit FileLock(FileDescriptor fd) : fd_(std::move(fd)) {}
  static Io<FileLock> take(const std::filesystem::path& path, int operation);
  FileDescriptor fd_;
};

}  // namespace kb::build
