// What /proc tells of processes: who their children are and whether their threads stand still.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace kb::sandbox {

/// Direct children of `pid`, those of all its threads. Empty when it has none or has ended.
std::vector<pid_t> children_of(pid_t pid);

/// Everything below `pid`, itself left out, parents before children. Processes that come and go
/// during the walk may be missed: whoever needs all of them walks until nothing changes.
std::vector<pid_t> descendants_of(pid_t pid);

/// Every process of session `session` on the machine (a walk over all of /proc).
std::vector<pid_t> members_of_session(pid_t session);

/// Null when `pid` has ended and been reaped.
std::optional<pid_t> parent_of(pid_t pid);

/// False when it has ended, a zombie included.
bool is_alive(pid_t pid);

/// Number of threads, 0 when it has ended.
std::uint32_t thread_count(pid_t pid);

/// True when every thread of `pid` is stopped or dead, so also when the process has gone. With
/// `accept_blocked` a thread that sleeps uninterruptibly in the kernel counts as stopped: it meets
/// a pending SIGSTOP before it returns to its program.
bool is_stopped(pid_t pid, bool accept_blocked);

}  // namespace kb::sandbox
