#include "build/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

#include "digest/sha256.h"

namespace kb::build {

namespace {

constexpr std::size_t kChunkBytes = 64 << 10;

std::unexpected<int> last_error() {
  return std::unexpected(errno);
}

// Retries a call that a signal interrupted.
template <class Call>
auto retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

Io<FileDescriptor> open_at(int folder, const char* name, int flags, mode_t mode = 0) {
  const int fd = retry([&] { return ::openat(folder, name, flags | O_CLOEXEC, mode); });
  if (fd < 0) return last_error();
  return FileDescriptor(fd);
}

// Calls `use(chunk)`, which returns 0 or errno, for every chunk of a file from its start.
template <class Use>
std::expected<std::uint64_t, CopyError> for_each_chunk(int fd, std::uint64_t max_bytes, Use use) {
  auto buffer = std::make_unique<std::array<char, kChunkBytes>>();
  std::uint64_t size = 0;
  while (true) {
    const ssize_t got = retry(
        [&] { return ::pread(fd, buffer->data(), buffer->size(), static_cast<off_t>(size)); });
    if (got < 0) return std::unexpected(CopyError{errno, true});
    if (got == 0) return size;
    size += static_cast<std::uint64_t>(got);
    if (size > max_bytes) return std::unexpected(CopyError{EFBIG, true});
    if (const int error = use(std::string_view(buffer->data(), static_cast<std::size_t>(got)))) {
      return std::unexpected(CopyError{error, false});
    }
  }
}

// 0 or errno.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = retry([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (put < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return 0;
}

Io<FileDescriptor> create_file(const std::filesystem::path& path, mode_t mode) {
  auto file = open_at(AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  if (file && ::fchmod(file->get(), mode) != 0) return last_error();  // whatever the umask
  return file;
}

}  // namespace

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

Io<FileDescriptor> open_folder(const std::filesystem::path& path) {
  return open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Io<FileDescriptor> open_beneath(int folder, const std::filesystem::path& relative) {
  if (relative.empty() || relative.is_absolute()) return std::unexpected(EINVAL);
  FileDescriptor parent;
  int at = folder;
  for (auto part = relative.begin(); part != relative.end();) {
    const std::filesystem::path name = *part;
    if (name.empty() || name == "." || name == "..") return std::unexpected(EINVAL);
    const bool last = ++part == relative.end();
    auto next = open_at(at, name.c_str(),
                        O_RDONLY | O_NOFOLLOW | (last ? O_NONBLOCK | O_NOCTTY : O_DIRECTORY));
    if (!next) return next;
    parent = std::move(*next);
    at = parent.get();
  }
  struct stat status {};
  if (::fstat(at, &status) != 0) return last_error();
  if (!S_ISREG(status.st_mode)) return std::unexpected(EINVAL);
  return parent;
}

Io<std::string> read_file(int fd, std::uint64_t max_bytes) {
  std::string bytes;
  auto size = for_each_chunk(fd, max_bytes, [&](std::string_view chunk) {
    bytes += chunk;
    return 0;
  });
  if (!size) return std::unexpected(size.error().error);
  return bytes;
}

Io<std::string> read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  auto file = open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file) return std::unexpected(file.error());
  return read_file(file->get(), max_bytes);
}

Io<Digest> digest_file(int fd, std::uint64_t max_bytes) {
  Sha256 sha256;
  auto size = for_each_chunk(fd, max_bytes, [&](std::string_view chunk) {
    sha256.update(chunk);
    return 0;
  });
  if (!size) return std::unexpected(size.error().error);
  return Digest{*size, sha256.hex()};
}

std::expected<Digest, CopyError> copy_file(int from, const std::filesystem::path& to, mode_t mode,
                                           std::uint64_t max_bytes) {
  auto file = create_file(to, mode);
  if (!file) return std::unexpected(CopyError{file.error(), false});
  Sha256 sha256;
  auto size = for_each_chunk(from, max_bytes, [&](std::string_view chunk) {
    sha256.update(chunk);
    return write_all(file->get(), chunk);
  });
  if (!size) return std::unexpected(size.error());
  if (::fsync(file->get()) != 0) return std::unexpected(CopyError{errno, false});
  return Digest{*size, sha256.hex()};
}

Io<void> write_file(const std::filesystem::path& path, std::string_view bytes, mode_t mode,
                    bool sync) {
  auto file = create_file(path, mode);
  if (!file) return std::unexpected(file.error());
  if (const int error = write_all(file->get(), bytes)) return std::unexpected(error);
  if (sync && ::fsync(file->get()) != 0) return last_error();
  return {};
}

// ---- removing
// ------------------------------------------------------------------------------------

namespace {

// The names in a folder, without "." and "..".
Io<std::vector<std::string>> list(int folder) {
  const int fd = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return last_error();
  DIR* stream = ::fdopendir(fd);
  if (stream == nullptr) {
    const int error = errno;
    ::close(fd);
    return std::unexpected(error);
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  const int error = errno;
  ::closedir(stream);
  if (error != 0) return std::unexpected(error);
  return names;
}

// Opens a folder that may have been left without permissions.
Io<FileDescriptor> open_for_removal(int parent, const char* name) {
  constexpr int kFlags = O_DIRECTORY | O_NOFOLLOW;
  auto handle = open_at(parent, name, O_PATH | kFlags);
  if (!handle) return handle;
  struct stat status {};
  if (::fstat(handle->get(), &status) == 0 && (status.st_mode & S_IRWXU) != S_IRWXU) {
    ::chmod(fmt::format("/proc/self/fd/{}", handle->get()).c_str(), S_IRWXU);
  }
  return open_at(parent, name, O_RDONLY | kFlags);
}

bool gone(int error) {
  return error == ENOENT;
}

}  // namespace

// A hostile tree can be deeper than the number of descriptors or the stack allow. So folders in
// folders are first moved up to the top: nothing below is ever deeper than two levels.
Io<void> remove_tree(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) == 0 || gone(errno)) return {};
  auto top = open_for_removal(AT_FDCWD, path.c_str());
  if (!top) {
    if (gone(top.error())) return {};
    return std::unexpected(top.error());
  }
  std::uint64_t counter = 0;
  while (true) {
    auto names = list(top->get());
    if (!names) return std::unexpected(names.error());
    if (names->empty()) break;
    for (const std::string& name : *names) {
      if (::unlinkat(top->get(), name.c_str(), 0) == 0 || gone(errno)) continue;
      auto folder = open_for_removal(top->get(), name.c_str());
      if (!folder) {
        if (gone(folder.error())) continue;
        return std::unexpected(folder.error());
      }
      auto inner = list(folder->get());
      if (!inner) return std::unexpected(inner.error());
      for (const std::string& child : *inner) {
        if (::unlinkat(folder->get(), child.c_str(), 0) == 0 || gone(errno)) continue;
        // Renaming a folder needs the right to write to it, and so does emptying it.
        if (auto opened = open_for_removal(folder->get(), child.c_str()); !opened) {
          if (gone(opened.error())) continue;
          return std::unexpected(opened.error());
        }
        while (true) {
          const std::string moved = fmt::format("~{}", counter++);
          if (::renameat2(folder->get(), child.c_str(), top->get(), moved.c_str(),
                          RENAME_NOREPLACE) == 0 ||
              gone(errno)) {
            break;
          }
          if (errno == EINVAL) {  // a file system without RENAME_NOREPLACE
            struct stat status {};
            if (::fstatat(top->get(), moved.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) continue;
            if (::renameat(folder->get(), child.c_str(), top->get(), moved.c_str()) == 0) break;
          }
          if (errno != EEXIST) return last_error();
        }
      }
      if (::unlinkat(top->get(), name.c_str(), AT_REMOVEDIR) != 0 && !gone(errno)) {
        return last_error();
      }
    }
  }
  if (::rmdir(path.c_str()) != 0 && !gone(errno)) return last_error();
  return {};
}

Usage measure_tree(const std::filesystem::path& path, Usage limit) {
  constexpr int kMaxDepth = 64;
  Usage usage;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(
      path, std::filesystem::directory_options::skip_permission_denied, error);
  while (!error && entry != std::filesystem::end(entry)) {
    ++usage.entries;
    struct stat status {};
    if (::lstat(entry->path().c_str(), &status) == 0) {
      usage.bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;  // sparse files are small
    }
    if (usage.bytes > limit.bytes || usage.entries > limit.entries) break;
    if (entry.depth() >= kMaxDepth) entry.disable_recursion_pending();
    entry.increment(error);
  }
  return usage;
}

bool disk_nearly_full(const std::filesystem::path& path) {
  constexpr std::uint64_t kMinBytes = 16ull << 20;
  constexpr std::uint64_t kMinFiles = 64;
  struct statvfs disk {};
  if (::statvfs(path.c_str(), &disk) != 0) return false;
  const bool counts_files = disk.f_files != 0;  // btrfs and others have no fixed number
  return static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize < kMinBytes ||
         (counts_files && disk.f_favail < kMinFiles);
}

}  // namespace kb::build
