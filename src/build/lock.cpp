#include "build/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

namespace kb::build {

namespace {

// True when `path` still names the open file `fd`.
bool still_named(const std::filesystem::path& path, int fd) {
  struct stat held {};
  struct stat named {};
  return ::fstat(fd, &held) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

}  // namespace

Io<FileLock> FileLock::take(const std::filesystem::path& path, int operation) {
  while (true) {
    int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0 && errno == EACCES) {
      // Another user's lock file: reading is enough for flock.
      fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
      if (fd < 0) errno = EACCES;
    }
    if (fd < 0) {
      if (errno == EINTR) continue;
      return std::unexpected(errno);
    }
    FileDescriptor file(fd);
    while (::flock(fd, operation) != 0) {
      if (errno != EINTR) return std::unexpected(errno);
    }
    if (still_named(path, fd)) return FileLock(std::move(file));
  }
}

Io<FileLock> FileLock::shared(const std::filesystem::path& path) {
  return take(path, LOCK_SH);
}
Io<FileLock> FileLock::exclusive(const std::filesystem::path& path) {
  return take(path, LOCK_EX);
}
Io<FileLock> FileLock::try_exclusive(const std::filesystem::path& path) {
  return take(path, LOCK_EX | LOCK_NB);
}
}  // namespace kb::build
