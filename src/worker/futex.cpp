#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

#include "worker/doorbell.h"

namespace kb::worker {

// Not FUTEX_PRIVATE: the word lies in memory shared between processes.
void futex_wait(std::atomic<std::uint32_t>* word, std::uint32_t seen, std::int64_t limit_ns) {
  timespec limit{limit_ns / 1'000'000'000, limit_ns % 1'000'000'000};
  ::syscall(SYS_futex, word, FUTEX_WAIT, seen, limit_ns < 0 ? nullptr : &limit, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>* word) {
  ::syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace kb::worker
