// What a sandbox sees: the system's programs and libraries, the command's folders, and otherwise
// nothing.
//
// Five choices that are not obvious:
//  - /dev is made of single device nodes and not by --dev. That would mount a devpts, for which
//    bubblewrap makes a second user namespace, and triples the time to start; terminals are no use
//    here.
//  - /proc/1 is covered. Process 1 is bubblewrap's own init: it runs without the seccomp filter, as
//  the
//    same user as the program, and marked dumpable, so that the program could write to its
//    /proc/1/mem and go on inside a process without a filter.
//  - /proc is read-only. A judge that runs as root is uid 0 to the kernel inside as well, and the
//  owner of
//    /proc/sys needs no capability to write there: kernel.core_pattern would be a way out. This
//    also takes away writes to /proc/PID/mem.
//    NVIDIA's driver library does not start where /proc/self is read-only, so for a worker on a GPU
//    only what does not belong to a process is.
//  - So are the device nodes, for the same reason: an owner may chmod. A device on a read-only
//  mount can
//    still be written to. bubblewrap has no option for it (--remount-ro adds nodev), but a bind
//    keeps the flags of the mount that it is made from, and spawn() makes that one read-only.
//  - `/` is made read-only last. It is a tmpfs without a size limit.
#include "sandbox/bubblewrap.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

namespace kb::sandbox {

const char* const sandbox_passwd =
    "root:x:0:0:root:/:/usr/sbin/nologin\n"
    "nobody:x:65534:65534:nobody:/home/nobody:/bin/sh\n";
const char* const sandbox_group = "root:x:0:\nnogroup:x:65534:\n";
const char* const sandbox_hosts = "127.0.0.1 localhost kernelbench\n::1 localhost\n";

std::expected<std::string, std::string> find_bubblewrap(const char* search_path) {
  std::istringstream folders(
      fmt::format("/usr/bin:/usr/local/bin:/bin:{}", search_path == nullptr ? "" : search_path));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.starts_with('/')) continue;
    std::string path = folder + "/bwrap";
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return std::unexpected(std::string(
      "bubblewrap is not installed: install the package bubblewrap "
      "(`sudo apt-get install bubblewrap`), or run with `--sandbox none` if you trust the code"));
}

namespace {

// What in /proc belongs to no process and could be written to by some user.
std::vector<std::string> writable_in_proc() {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end;
       it.increment(error)) {
    const std::string path = it->path().string();
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 || S_ISLNK(status.st_mode)) continue;
    const bool process = path.find_first_not_of("0123456789", sizeof "/proc") == std::string::npos;
    if (!process && (S_ISDIR(status.st_mode) || (status.st_mode & 0222) != 0))
      paths.push_back(path);
  }
  return paths;
}

}  // namespace

std::expected<std::vector<std::string>, std::string> bubblewrap_arguments(
    const Bubblewrap& bubblewrap, const Command& command, const BubblewrapFds& fds) {
  std::vector<std::string> arguments = {bubblewrap.path,
                                        "--unshare-user",
                                        "--unshare-pid",
                                        "--unshare-net",
                                        "--unshare-ipc",
                                        "--unshare-uts",
                                        "--unshare-cgroup-try",
                                        "--uid",
                                        "65534",
                                        "--gid",
                                        "65534",
                                        "--hostname",
                                        "kernelbench",
                                        "--die-with-parent",
                                        "--new-session",
                                        "--cap-drop",
                                        "ALL",
                                        "--clearenv"};
  const auto add = [&](std::initializer_list<std::string> more) {
    arguments.insert(arguments.end(), more);
  };
  const auto add_tmpfs = [&](const std::string& where, std::uint64_t bytes) {
    if (bubblewrap.has_size) add({"--size", fmt::format("{}", bytes)});
    add({"--tmpfs", where});
  };

  // The system.
  add({"--ro-bind", "/usr", "/usr"});
  for (const char* folder : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    struct stat status {};
    if (::lstat(folder, &status) != 0) continue;
    std::error_code error;
    if (S_ISLNK(status.st_mode)) {
      add({"--symlink", std::filesystem::read_symlink(folder, error).string(), folder});
    } else {
      add({"--ro-bind", folder, folder});
    }
  }
  for (const char* path : {"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
                           "/etc/alternatives", "/etc/localtime"}) {
    add({"--ro-bind-try", path, path});
  }
  add({"--file", fmt::format("{}", fds.passwd), "/etc/passwd"});
  add({"--file", fmt::format("{}", fds.group), "/etc/group"});
  add({"--file", fmt::format("{}", fds.hosts), "/etc/hosts"});
  // How many CPUs and memory nodes there are, which PyTorch and OpenMP want to know.
  for (const char* path : {"/sys/devices/system/cpu", "/sys/devices/system/node"}) {
    add({"--ro-bind-try", path, path});
  }
  add({"--proc", "/proc"});
  add_tmpfs("/proc/1", 4096);
  if (command.device_nodes.empty()) {
    add({"--remount-ro", "/proc"});
  } else {
    for (const std::string& path : writable_in_proc()) add({"--ro-bind-try", path, path});
  }

  // Devices: the harmless ones, and a GPU's where the command asks for them.
  for (const char* node : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}) {
    add({"--dev-bind", node, node});
  }
  for (const std::string& node : command.device_nodes) add({"--dev-bind", node, node});
  add({"--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/proc/self/fd/0", "/dev/stdin",
       "--symlink", "/proc/self/fd/1", "/dev/stdout", "--symlink", "/proc/self/fd/2",
       "/dev/stderr"});
  for (const char* folder : {"/tmp", "/dev/shm", "/home/nobody"}) {
    add_tmpfs(folder, command.limits.tmpfs_bytes);
  }

  // The command's own.
  const auto add_binds = [&](const std::vector<Bind>& binds,
                             const char* option) -> std::expected<void, std::string> {
    for (const Bind& bind : binds) {
      if (!bind.host.starts_with('/')) {
        return std::unexpected(
            fmt::format("a path for the sandbox must be absolute, and this is not: {}", bind.host));
      }
      if (::access(bind.host.c_str(), F_OK) != 0) {
        if (bind.optional) continue;
        return std::unexpected(
            fmt::format("the sandbox is to show {}, which does not exist", bind.host));
      }
      add({option, bind.host, bind.inside.empty() ? bind.host : bind.inside});
    }
    return {};
  };
  if (auto done = add_binds(command.read_only, "--ro-bind"); !done) {
    return std::unexpected(done.error());
  }
  if (auto done = add_binds(command.writable, "--bind"); !done) {
    return std::unexpected(done.error());
  }
  add({"--remount-ro", "/", "--chdir", command.working_directory});

  for (const auto& [name, value] : command.environment) add({"--setenv", name, value});
  add({"--seccomp", fmt::format("{}", fds.seccomp)});
  add({"--json-status-fd", fmt::format("{}", fds.status)});
  if (fds.block >= 0) add({"--block-fd", fmt::format("{}", fds.block)});
  add({"--"});
  arguments.insert(arguments.end(), command.argv.begin(), command.argv.end());
  return arguments;
}

}  // namespace kb::sandbox
