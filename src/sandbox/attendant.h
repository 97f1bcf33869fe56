// The one thread of a launcher, which attends to everything that it has started.
//
//  - It does the forking. The kernel sends the parent-death signal when the forking *thread* ends;
//  were
//    sandboxes forked by pool threads, they would die with those. This thread lives until the last
//    sandbox has gone.
//  - It empties the pipes that the programs print to.
//  - It counts processes where neither a control group nor an rlimit does.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "sandbox/output_buffer.h"
#include "sandbox/spawn.h"

namespace kb::sandbox {

class Attendant {
 public:
  Attendant();
  ~Attendant();
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;

  /// spawn() on the attendant's thread.
  std::expected<Spawned, std::string> spawn(const SpawnRequest& request);

  /// Drains `output` until it ends or forget() is called with the same number.
  std::uint64_t attend(std::shared_ptr<OutputBuffer> output);
  /// Calls `check` every 20 ms until forget() is called with the same number. It must not call the
  /// attendant.
  std::uint64_t watch(std::function<void()> check);
  /// Neither the buffer nor the check is touched once this has returned.
  void forget(std::uint64_t number);

 private:
  struct Fork {
    const SpawnRequest& request;
    std::optional<std::expected<Spawned, std::string>> result;
  };
  void run();
  void wake();

  std::mutex mutex_;
  std::uint64_t next_number_ = 1;  ///< 0 is the wake-up event
  std::map<std::uint64_t, std::shared_ptr<OutputBuffer>> outputs_;
  std::map<std::uint64_t, std::function<void()>> checks_;
  std::vector<Fork*> forks_;  ///< wanted; each is its caller's, who waits for forked_
  std::condition_variable forked_;
  bool stopping_ = false;
  UniqueFd epoll_;
  UniqueFd wake_;
  std::thread thread_;
};

}  // namespace kb::sandbox
