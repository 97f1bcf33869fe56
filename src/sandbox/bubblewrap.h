// The command line that makes bubblewrap build a sandbox. Options that bubblewrap 0.6 has, no
// others.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "sandbox/sandbox.h"

namespace kb::sandbox {

struct Bubblewrap {
  std::string path;
  bool has_size = false;  ///< --size for --tmpfs, from 0.7 on
};

/// Looks in the folders where distributions put it, then along `search_path` (the value of PATH).
/// Error: a sentence that says what to install.
std::expected<std::string, std::string> find_bubblewrap(const char* search_path);

/// Descriptors that bubblewrap itself reads and closes, by the numbers that they have in its
/// process.
struct BubblewrapFds {
  int seccomp = -1;  ///< the filter
  int status = -1;   ///< where it says the pid of its init, and that the program has been started
  int passwd = -1;   ///< becomes /etc/passwd
  int group = -1;    ///< becomes /etc/group
  int hosts = -1;    ///< becomes /etc/hosts
  int block = -1;    ///< optional: it waits for a byte from here before it starts the program
};

/// The arguments from argv[0] on. Error: a sentence about a folder or file that does not exist.
std::expected<std::vector<std::string>, std::string> bubblewrap_arguments(
    const Bubblewrap& bubblewrap, const Command& command, const BubblewrapFds& fds);

/// The files of /etc that are made up.
extern const char* const sandbox_passwd;
extern const char* const sandbox_group;
extern const char* const sandbox_hosts;

}  // namespace kb::sandbox
