// The judge's own threads. They sleep on a condition variable whenever no parallel_for runs, and
// never spin: on a machine of two cores a spinning judge would be charged to the worker it times
// (which is why this is not OpenMP).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace kb::cpu {

class ThreadPool {
 public:
  /// Starts `threads - 1` threads (the caller is the other one); 0 means one per available CPU.
  explicit ThreadPool(unsigned threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  unsigned size() const;
  /// Calls `body(block, thread)` once for each block in [0, blocks), thread in [0, size()), and
  /// returns when all have finished. The first exception of a body is rethrown here, and blocks not
  /// begun by then are dropped. Not reentrant. A thread that wakes late may get no block at all.
  void parallel_for(std::size_t blocks, const std::function<void(std::size_t, unsigned)>& body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kb::cpu
