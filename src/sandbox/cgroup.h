// Control groups: the quick way to stop, count, limit and kill everything that a sandbox runs.
//
// A machine has a version 2 hierarchy, version 1 hierarchies (one per controller), or both; and the
// judge may or may not be allowed to make groups in them. Cgroups::find() looks for a place in each
// hierarchy by trying, and a Cgroup is one group in every place that is of use.
//
// Groups are called kernelbench-<pid of the judge>-<n>. The judge holds a lock (flock) on each, so
// that what a killed judge left behind can be told from what a living one uses, and is removed by
// the next.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/unique_fd.h"

namespace kb::sandbox {

/// Which freezer to use; `fastest` is the first of the others that works here.
enum class FreezerChoice { fastest, cgroup2, cgroup1, signal };

/// A folder in which the judge can make groups and move its children into them.
struct CgroupPlace {
  std::string folder;
  bool version2 = false;
  bool freezes = false;
  bool limits_memory = false;
  bool limits_processes = false;
};

/// Every process of one sandbox, seen by the kernel as a unit.
class Cgroup {
 public:
  /// Kills what is left inside and removes the folders.
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  /// The version 2 folder, to be given to clone3; negative when there is none.
  int version2_folder() const;
  /// `tasks` files of version 1, to each of which the new process writes "0".
  std::vector<int> version1_tasks() const;
  /// The folder whose freezer is to be used; negative when there is none of that version.
  int freezer_folder(bool version2) const;

  bool limits_memory() const;
  bool limits_processes() const;
  /// True once the kernel has killed a process inside for exceeding the memory limit.
  bool out_of_memory() const;
  /// Pids of all processes inside, zombies left out.
  std::vector<pid_t> processes() const;
  /// SIGKILL to all inside, thawed where that is needed for the signal to work; repeated until none
  /// is left or the time is over (false).
  bool kill_all(std::chrono::milliseconds limit);

 private:
  friend class Cgroups;
  struct Group {
    CgroupPlace place;
    std::string path;
    UniqueFd folder;
    UniqueFd tasks;  ///< version 1 only
  };
  Cgroup() = default;
  std::vector<Group> groups_;
};

/// The places of this machine. Immutable after find(), hence safe to share between threads.
class Cgroups {
 public:
  /// Looks for places, tries each with a process of its own, and sweeps what dead judges left
  /// there. Finding none is not an error.
  static Cgroups find(FreezerChoice freezer);

  /// A group with these limits in all places. Null when there is none or it cannot be made.
  std::unique_ptr<Cgroup> make(std::uint64_t memory_bytes, std::uint32_t max_processes) const;

  const std::vector<CgroupPlace>& places() const { return places_; }

 private:
  std::vector<CgroupPlace> places_;
};

/// How many CPUs' time the processes of a group may use, by its own limit and by those of the
/// groups above it up to `mount`; none: as much as there is. `folder` is `mount` or below it.
std::optional<double> cpu_limit_of(std::string folder, const std::string& mount);
/// The same of this process, the least of what all hierarchies say.
std::optional<double> cpu_limit();

/// Removes the groups in `folder` whose judge is dead, with the processes in them.
void sweep_stale_cgroups(const std::string& folder);

}  // namespace kb::sandbox
