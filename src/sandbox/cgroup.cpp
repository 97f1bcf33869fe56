#include "sandbox/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string_view>
#include <thread>

#include "sandbox/process_tree.h"
#include "sandbox/spawn.h"

namespace kb::sandbox {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::string_view name_prefix = "kernelbench-";

UniqueFd open_in(int folder, const char* name, int flags) {
  return UniqueFd(::openat(folder, name, flags | O_CLOEXEC));
}

bool write_in(int folder, const char* name, std::string_view text) {
  const UniqueFd file = open_in(folder, name, O_WRONLY);
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::string read_in(int folder, const char* name) {
  const UniqueFd file = open_in(folder, name, O_RDONLY);
  std::string text;
  std::array<char, 4096> buffer;
  ssize_t got = 0;
  while (file && (got = ::read(file.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

/// The number after `key` in a file of lines "key number"; 0 when there is none.
std::uint64_t counter(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  std::string name;
  std::uint64_t value = 0;
  while (lines >> name >> value) {
    if (name == key) return value;
  }
  return 0;
}

std::vector<pid_t> processes_in(int folder) {
  std::vector<pid_t> found;
  std::istringstream numbers(read_in(folder, "cgroup.procs"));
  pid_t pid = 0;
  while (numbers >> pid) {
    if (pid > 0 && is_alive(pid)) found.push_back(pid);
  }
  return found;
}

/// Makes all inside runnable, so that a pending SIGKILL is acted upon. A frozen task of version 1
/// sleeps through it.
void thaw(int folder) {
  (void)write_in(folder, "freezer.state", "THAWED");
  (void)write_in(folder, "cgroup.freeze", "0");
}

bool kill_all_in(int folder, Clock::time_point deadline) {
  bool by_kernel = write_in(folder, "cgroup.kill", "1");
  for (int round = 0;; ++round) {
    const std::vector<pid_t> left = processes_in(folder);
    if (left.empty()) return true;
    if (!by_kernel || round % 50 == 49) {
      for (pid_t pid : left) ::kill(pid, SIGKILL);
    }
    thaw(folder);
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(round < 20 ? 100 : 1000));
  }
}

/// rmdir, which fails while the last tasks are still being taken down.
void remove_folder(const std::string& path, Clock::time_point deadline) {
  for (int round = 0; ::rmdir(path.c_str()) != 0 && errno == EBUSY && Clock::now() < deadline;
       ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds(round < 20 ? 100 : 1000));
  }
}

/// A hierarchy that is mounted here: where, and this process's group in it.
struct Hierarchy {
  std::string mount;
  std::string own;  ///< folder of this process's own group
};

/// Key: "" for version 2, otherwise the controller's name.
std::map<std::string, Hierarchy> mounted_hierarchies() {
  std::map<std::string, std::string> own_group;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::istringstream controllers(line.substr(first + 1, second - first - 1));
    const std::string group = line.substr(second + 1);
    if (controllers.str().empty()) own_group[""] = group;
    for (std::string name; std::getline(controllers, name, ',');) own_group[name] = group;
  }

  std::map<std::string, Hierarchy> found;
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const std::size_t separator = line.find(" - ");
    if (separator == std::string::npos) continue;
    std::istringstream before(line.substr(0, separator));
    std::istringstream after(line.substr(separator + 3));
    std::string skip, root, mount, type, options;
    before >> skip >> skip >> skip >> root >> mount;
    after >> type >> skip >> options;
    const auto note = [&](const std::string& name) {
      const auto group = own_group.find(name);
      if (group == own_group.end() || found.contains(name)) return;
      // The mount may show a part of the hierarchy only, as in a container.
      std::string own = group->second;
      if (root != "/" && own.starts_with(root)) own.erase(0, root.size());
      if (own == "/" || own.starts_with("/..")) own.clear();
      found[name] = {mount, mount + own};
    };
    if (type == "cgroup2") note("");
    if (type == "cgroup") {
      std::istringstream names(options);
      for (std::string name; std::getline(names, name, ',');) {
        if (name == "freezer" || name == "memory" || name == "pids" || name == "cpu") note(name);
      }
    }
  }
  return found;
}

/// Of one group, of either version; infinite without a limit.
double own_cpu_limit(const std::string& folder) {
  constexpr double unlimited = std::numeric_limits<double>::infinity();
  double allowed_us = -1, of_us = 0;
  std::ifstream version2(folder + "/cpu.max");
  if (!(version2 >> allowed_us >> of_us)) {  // "max" is no number
    if (!(std::ifstream(folder + "/cpu.cfs_quota_us") >> allowed_us) ||
        !(std::ifstream(folder + "/cpu.cfs_period_us") >> of_us))
      return unlimited;
  }
  return allowed_us >= 0 && of_us > 0 ? allowed_us / of_us : unlimited;
}

/// A new group in `folder`, locked; the path is empty when it cannot be made.
std::pair<std::string, UniqueFd> make_group(const std::string& folder) {
  for (int n = 0; n < 100'000; ++n) {
    std::string path = fmt::format("{}/{}{}-{}", folder, name_prefix, ::getpid(), n);
    if (::mkdir(path.c_str(), 0755) == 0) {
      UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (fd) {
        (void)::flock(fd.get(), LOCK_EX | LOCK_NB);
        return {std::move(path), std::move(fd)};
      }
      ::rmdir(path.c_str());
      return {};
    }
    if (errno != EEXIST) return {};
  }
  return {};
}

/// Tries `folder` with a group and a process of its own. Null when either cannot be had: being
/// allowed to make a group does not mean being allowed to move a process into it.
std::optional<CgroupPlace> try_place(const std::string& folder, bool version2) {
  const auto [path, fd] = make_group(folder);
  if (path.empty()) return std::nullopt;
  CgroupPlace place;
  place.folder = folder;
  place.version2 = version2;
  const auto has = [&](const char* name) { return ::faccessat(fd.get(), name, W_OK, 0) == 0; };
  place.freezes = has(version2 ? "cgroup.freeze" : "freezer.state");
  place.limits_memory = has(version2 ? "memory.max" : "memory.limit_in_bytes");
  place.limits_processes = has("pids.max");

  SpawnRequest request;
  request.path = ::access("/usr/bin/true", X_OK) == 0 ? "/usr/bin/true" : "/bin/true";
  request.argv = {"true"};
  UniqueFd tasks;
  if (version2) {
    request.cgroup2_folder = fd.get();
  } else {
    tasks = open_in(fd.get(), "tasks", O_WRONLY);
    request.cgroup1_tasks = {tasks.get()};
  }
  const auto spawned = spawn(request);
  if (spawned) {
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(spawned->pid), &info, WEXITED) != 0 &&
           errno == EINTR) {
    }
  }
  remove_folder(path, Clock::now() + milliseconds(500));
  if (!spawned) return std::nullopt;
  return place;
}

}  // namespace

Cgroup::~Cgroup() {
  const auto deadline = Clock::now() + milliseconds(2000);
  for (const Group& group : groups_) (void)kill_all_in(group.folder.get(), deadline);
  for (Group& group : groups_) {
    group.tasks.reset();
    group.folder.reset();
    remove_folder(group.path, deadline);
  }
}

int Cgroup::version2_folder() const {
  for (const Group& group : groups_) {
    if (group.place.version2) return group.folder.get();
  }
  return -1;
}

std::vector<int> Cgroup::version1_tasks() const {
  std::vector<int> files;
  for (const Group& group : groups_) {
    if (!group.place.version2) files.push_back(group.tasks.get());
  }
  return files;
}

int Cgroup::freezer_folder(bool version2) const {
  for (const Group& group : groups_) {
    if (group.place.version2 == version2 && group.place.freezes) return group.folder.get();
  }
  return -1;
}

bool Cgroup::limits_memory() const {
  return std::ranges::any_of(groups_, [](const Group& g) { return g.place.limits_memory; });
}

bool Cgroup::limits_processes() const {
  return std::ranges::any_of(groups_, [](const Group& g) { return g.place.limits_processes; });
}

bool Cgroup::out_of_memory() const {
  for (const Group& group : groups_) {
    if (!group.place.limits_memory) continue;
    const char* file = group.place.version2 ? "memory.events" : "memory.oom_control";
    if (counter(read_in(group.folder.get(), file), "oom_kill") > 0) return true;
  }
  return false;
}

std::vector<pid_t> Cgroup::processes() const {
  return groups_.empty() ? std::vector<pid_t>{} : processes_in(groups_.front().folder.get());
}

bool Cgroup::kill_all(milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  bool empty = true;
  for (const Group& group : groups_) empty = kill_all_in(group.folder.get(), deadline) && empty;
  return empty;
}

Cgroups Cgroups::find(FreezerChoice freezer) {
  Cgroups result;
  const std::map<std::string, Hierarchy> hierarchies = mounted_hierarchies();

  const auto use_first = [&](std::vector<std::string> folders, bool version2, auto wanted) {
    std::optional<CgroupPlace> best;
    for (const std::string& folder : folders) {
      sweep_stale_cgroups(folder);
      std::optional<CgroupPlace> place = try_place(folder, version2);
      if (!place) continue;
      if (wanted(*place)) {
        best = place;
        break;
      }
      if (!best) best = place;
    }
    return best;
  };

  std::optional<CgroupPlace> version2;
  if (const auto it = hierarchies.find(""); it != hierarchies.end()) {
    // Controllers are handed down only to groups whose parent holds no process itself: so not below
    // our own group, but beside it, or at the top.
    const Hierarchy& h = it->second;
    std::vector<std::string> folders;
    if (h.own != h.mount) {
      folders.push_back(std::filesystem::path(h.own).parent_path().string());
    }
    for (const std::string& folder : {h.mount, h.own}) {
      if (std::ranges::find(folders, folder) == folders.end()) folders.push_back(folder);
    }
    version2 = use_first(folders, true, [](const CgroupPlace& place) {
      return place.limits_memory && place.limits_processes;
    });
  }
  const bool freeze_by_1 = freezer == FreezerChoice::cgroup1;
  const bool want_2 = freezer == FreezerChoice::fastest || freezer == FreezerChoice::cgroup2;
  const bool have_2 = version2 && (version2->limits_memory || version2->limits_processes ||
                                   (version2->freezes && want_2));
  if (have_2) result.places_.push_back(*version2);

  const auto use_version1 = [&](const char* controller) {
    const auto it = hierarchies.find(controller);
    if (it == hierarchies.end()) return;
    std::vector<std::string> folders = {it->second.own};
    if (it->second.mount != it->second.own) folders.push_back(it->second.mount);
    const auto place = use_first(folders, false, [](const CgroupPlace&) { return true; });
    if (!place) return;
    // Two controllers may share one hierarchy, where a second group would undo the first.
    for (const CgroupPlace& other : result.places_) {
      if (other.folder == place->folder) return;
    }
    result.places_.push_back(*place);
  };
  if (freeze_by_1 || (freezer == FreezerChoice::fastest && !(have_2 && version2->freezes))) {
    use_version1("freezer");
  }
  if (!(have_2 && version2->limits_memory)) use_version1("memory");
  if (!(have_2 && version2->limits_processes)) use_version1("pids");
  return result;
}

std::optional<double> cpu_limit_of(std::string folder, const std::string& mount) {
  double least = own_cpu_limit(folder);
  while (folder.size() > mount.size()) {
    folder = std::filesystem::path(folder).parent_path().string();
    least = std::min(least, own_cpu_limit(folder));
  }
  return std::isfinite(least) ? std::optional(least) : std::nullopt;
}

std::optional<double> cpu_limit() {
  std::optional<double> least;
  for (const auto& [controller, at] : mounted_hierarchies())
    if (controller.empty() || controller == "cpu")
      if (const auto limit = cpu_limit_of(at.own, at.mount))
        least = std::min(*limit, least.value_or(*limit));
  return least;
}

std::unique_ptr<Cgroup> Cgroups::make(std::uint64_t memory_bytes,
                                      std::uint32_t max_processes) const {
  if (places_.empty()) return nullptr;
  std::unique_ptr<Cgroup> cgroup(new Cgroup);
  for (const CgroupPlace& place : places_) {
    auto [path, folder] = make_group(place.folder);
    if (path.empty()) return nullptr;
    Cgroup::Group group{place, std::move(path), std::move(folder), UniqueFd()};
    const int fd = group.folder.get();
    if (!place.version2) group.tasks = open_in(fd, "tasks", O_WRONLY);
    if (place.limits_memory) {
      const std::string bytes = fmt::format("{}", memory_bytes);
      if (place.version2) {
        (void)write_in(fd, "memory.max", bytes);
        (void)write_in(fd, "memory.swap.max", "0");
        (void)write_in(fd, "memory.oom.group", "1");
      } else {
        (void)write_in(fd, "memory.limit_in_bytes", bytes);
        (void)write_in(fd, "memory.memsw.limit_in_bytes", bytes);
      }
    }
    if (place.limits_processes) (void)write_in(fd, "pids.max", fmt::format("{}", max_processes));
    cgroup->groups_.push_back(std::move(group));
  }
  return cgroup;
}

void sweep_stale_cgroups(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> stale;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(name_prefix)) continue;
    pid_t owner = 0;
    const char* const digits = name.data() + name_prefix.size();
    const auto parsed = std::from_chars(digits, name.data() + name.size(), owner);
    if (parsed.ec != std::errc{} || *parsed.ptr != '-' || owner <= 0) continue;
    if (::kill(owner, 0) == 0 || errno != ESRCH) continue;
    stale.push_back(it->path().string());
  }
  for (const std::string& path : stale) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // A judge in another pid namespace looks dead from here, but holds its lock.
    if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) continue;
    const auto deadline = Clock::now() + milliseconds(500);
    (void)kill_all_in(fd.get(), deadline);
    remove_folder(path, deadline);
  }
}

}  // namespace kb::sandbox
