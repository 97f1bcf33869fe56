#include "problem/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace kb::problem {
namespace {

class File {
 public:
  // O_NONBLOCK: opening a FIFO must not wait for a writer. It has no effect on a regular file.
  explicit File(const char* path)
      : fd_(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  unsigned char before = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (before == 0xc2 && byte >= 0x80 && byte < 0xa0)
      result.back() = '?';  // of two bytes, U+0080 to U+009F: some terminals obey them
    else
      result += byte < 0x20 || byte == 0x7f ? '?' : c;
    before = byte;
  }
  return result;
}

bool is_utf8(std::string_view bytes) {
  std::size_t i = 0;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  while (i < bytes.size()) {
    const unsigned lead = byte(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    std::size_t length = 0;
    unsigned value = 0;
    unsigned smallest = 0;
    if (lead >= 0xc2 && lead < 0xe0) {
      length = 2, value = lead & 0x1f, smallest = 0x80;
    } else if (lead >= 0xe0 && lead < 0xf0) {
      length = 3, value = lead & 0x0f, smallest = 0x800;
    } else if (lead >= 0xf0 && lead < 0xf5) {
      length = 4, value = lead & 0x07, smallest = 0x10000;
    } else {
      return false;
    }
    if (bytes.size() - i < length) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return false;
      value = (value << 6) | (byte(i + k) & 0x3f);
    }
    if (value < smallest || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return false;
    i += length;
  }
  return true;
}

std::expected<std::string, std::string> read_text_file(const std::filesystem::path& path) {
  const std::string shown = printable(path.string());
  const auto fail = [&shown](std::string_view what) {
    return std::unexpected(fmt::format("{} {}", shown, what));
  };
  const File file(path.c_str());
  if (file.fd() < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) return fail("does not exist");
    if (error == EACCES) return fail("may not be read by this user; check its permissions");
    if (error == ENXIO) return fail("is not a regular file");
    return fail(fmt::format("cannot be opened: {}", std::strerror(error)));
  }
  struct stat status {};
  if (::fstat(file.fd(), &status) != 0) {
    return fail(fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  if (S_ISDIR(status.st_mode)) return fail("is a folder; give the path of a file");
  if (!S_ISREG(status.st_mode)) return fail("is not a regular file");

  const std::string too_large = "is larger than 4 MiB, the limit for a source file";
  if (static_cast<unsigned long long>(status.st_size) > kMaxSourceBytes) return fail(too_large);
  // The file may grow while it is read: one byte more than the limit is enough to know.
  std::string text(static_cast<std::size_t>(status.st_size) + 1, '\0');
  std::size_t size = 0;
  while (true) {
    if (size == text.size()) {
      if (size > kMaxSourceBytes) return fail(too_large);
      text.resize(kMaxSourceBytes + 1);
    }
    const ssize_t got = ::read(file.fd(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(fmt::format("cannot be read: {}", std::strerror(errno)));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kMaxSourceBytes) return fail(too_large);
  text.resize(size);
  if (!is_utf8(text)) return fail("is not UTF-8 text; save it as UTF-8");
  if (text.find('\0') != std::string::npos)
    return fail("holds a NUL byte and is not a source file");
  return text;
}

}  // namespace kb::problem
