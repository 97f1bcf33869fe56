#include "sandbox/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "sandbox/unique_fd.h"

namespace kb::sandbox {
namespace {

/// The first bytes of a small file of /proc; empty when it cannot be read.
std::string_view read_small(const char* path, std::span<char> into) {
  const UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  const ssize_t got = ::read(file.get(), into.data(), into.size());
  return got > 0 ? std::string_view(into.data(), static_cast<std::size_t>(got))
                 : std::string_view{};
}

/// Fields of /proc/.../stat from the third on: the second, the name, may hold anything.
struct Stat {
  char state = 'X';
  pid_t parent = 0;
  pid_t session = 0;
};

std::optional<Stat> read_stat(const char* path) {
  std::array<char, 512> buffer;
  const std::string_view text = read_small(path, buffer);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= text.size()) return std::nullopt;
  const char* at = text.data() + name_end + 2;
  const char* const end = text.data() + text.size();
  Stat stat;
  stat.state = *at++;
  const auto next = [&]() {
    pid_t value = 0;
    while (at < end && *at == ' ') ++at;
    at = std::from_chars(at, end, value).ptr;
    return value;
  };
  stat.parent = next();
  (void)next();  // process group
  stat.session = next();
  return stat;
}

std::optional<Stat> stat_of(pid_t pid) {
  return read_stat(fmt::format("/proc/{}/stat", pid).c_str());
}

/// Calls `visit` with every numeric name in `folder`, until it returns false.
template <typename Visit>
void for_each_number(const char* folder, Visit visit) {
  DIR* dir = ::opendir(folder);
  if (dir == nullptr) return;
  while (const dirent* entry = ::readdir(dir)) {
    pid_t number = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    const auto parsed = std::from_chars(entry->d_name, end, number);
    if (parsed.ptr == end && parsed.ec == std::errc{} && !visit(number)) break;
  }
  ::closedir(dir);
}

void append_numbers(std::string_view text, std::vector<pid_t>& to) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    pid_t number = 0;
    const auto parsed = std::from_chars(at, end, number);
    if (parsed.ec == std::errc{} && number > 0) to.push_back(number);
    at = parsed.ptr == at ? at + 1 : parsed.ptr;
  }
}

/// Appends the children that thread `thread` of `pid` has made. False where the kernel lacks the
/// file (CONFIG_PROC_CHILDREN).
bool append_children(pid_t pid, pid_t thread, std::vector<pid_t>& to) {
  const UniqueFd file(
      ::open(fmt::format("/proc/{}/task/{}/children", pid, thread).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return false;
  std::string text;
  std::array<char, 4096> buffer;
  ssize_t got = 0;
  while ((got = ::read(file.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  append_numbers(text, to);
  return true;
}

}  // namespace

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> found;
  bool supported = true;
  for_each_number(fmt::format("/proc/{}/task", pid).c_str(), [&](pid_t thread) {
    supported = append_children(pid, thread, found) || stat_of(thread) == std::nullopt;
    return supported;
  });
  if (!supported) {
    found.clear();
    for_each_number("/proc", [&](pid_t other) {
      if (parent_of(other) == pid) found.push_back(other);
      return true;
    });
  }
  return found;
}

std::vector<pid_t> descendants_of(pid_t pid) {
  std::vector<pid_t> found = children_of(pid);
  for (std::size_t at = 0; at < found.size(); ++at) {
    const std::vector<pid_t> more = children_of(found[at]);
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

std::vector<pid_t> members_of_session(pid_t session) {
  std::vector<pid_t> found;
  for_each_number("/proc", [&](pid_t pid) {
    const std::optional<Stat> stat = stat_of(pid);
    if (stat && stat->session == session) found.push_back(pid);
    return true;
  });
  return found;
}

std::optional<pid_t> parent_of(pid_t pid) {
  const std::optional<Stat> stat = stat_of(pid);
  if (!stat) return std::nullopt;
  return stat->parent;
}

bool is_alive(pid_t pid) {
  const std::optional<Stat> stat = stat_of(pid);
  return stat && stat->state != 'Z' && stat->state != 'X';
}

std::uint32_t thread_count(pid_t pid) {
  std::uint32_t count = 0;
  for_each_number(fmt::format("/proc/{}/task", pid).c_str(), [&](pid_t) {
    ++count;
    return true;
  });
  return count;
}

bool is_stopped(pid_t pid, bool accept_blocked) {
  bool stopped = true;
  for_each_number(fmt::format("/proc/{}/task", pid).c_str(), [&](pid_t thread) {
    const std::optional<Stat> stat =
        read_stat(fmt::format("/proc/{}/task/{}/stat", pid, thread).c_str());
    if (stat) {
      const char state = stat->state;
      stopped = state == 'T' || state == 't' || state == 'Z' || state == 'X' ||
                (state == 'D' && accept_blocked);
    }
    return stopped;
  });
  return stopped;
}

}  // namespace kb::sandbox
