// Starts a program with exactly the descriptors, limits and control groups that it is to have.
//
// posix_spawn cannot do this (limits, groups), fork copies the judge's page tables, which takes
// long for a process of many gigabytes. So: clone with a borrowed address space, as vfork does, the
// child doing nothing but system calls between the clone and the exec.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/unique_fd.h"

namespace kb::sandbox {

struct SpawnRequest {
  std::string path;
  std::vector<std::string> argv;
  std::vector<std::string> environment;  ///< "NAME=value", all of it
  std::string working_directory;         ///< empty: that of the judge
  /// Our descriptor → its number there; nothing else is inherited. 0, 1 and 2 that are not listed
  /// become /dev/null.
  std::vector<std::pair<int, int>> fds;
  std::vector<std::pair<int, rlim_t>> limits;  ///< RLIMIT_… → soft and hard
  /// Gives it a mount namespace in which /dev is read-only. Nothing happens where we may not do
  /// that.
  bool read_only_dev = false;
  int cgroup2_folder = -1;
  std::vector<int> cgroup1_tasks;
};

struct Spawned {
  pid_t pid = -1;
  UniqueFd pidfd;
};

/// Starts the program in a session of its own, with default signal handling. It gets SIGKILL when
/// the *thread* that called this ends (so says prctl(2) of PR_SET_PDEATHSIG): call it from a thread
/// that lives as long as the judge. Returns after the exec. Error: which step failed and why.
std::expected<Spawned, std::string> spawn(const SpawnRequest& request);

}  // namespace kb::sandbox
