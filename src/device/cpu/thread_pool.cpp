#include "device/cpu/thread_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "device/cpu/affinity.h"

namespace kb::cpu {
namespace {

/// How many CPUs this process may run on, or the machine has where that cannot be read.
unsigned available_cpus() {
  const auto allowed = static_cast<unsigned>(cpus_of(0).size());
  return allowed > 0 ? allowed : std::max(1U, std::thread::hardware_concurrency());
}

/// Blocks all signals of this thread while it lives. Threads started meanwhile inherit that, so
/// that a signal to the process never lands on a thread of the pool.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

/// One parallel_for; lives on its caller's stack.
struct Job {
  std::size_t blocks;
  const std::function<void(std::size_t, unsigned)>& body;
  std::atomic<std::size_t> next{0};
  std::mutex error_mutex{};
  std::exception_ptr error = nullptr;  ///< the first one

  /// Takes blocks until none is left. After an exception the blocks that nobody has begun are
  /// dropped.
  void work(unsigned thread) {
    for (;;) {
      std::size_t block = next.fetch_add(1, std::memory_order_relaxed);
      if (block >= blocks) return;
      try {
        body(block, thread);
      } catch (...) {
        std::lock_guard lock(error_mutex);
        if (!error) error = std::current_exception();
        next.store(blocks, std::memory_order_relaxed);
      }
    }
  }
};

}  // namespace

// A job is announced by `job` and a new `generation`. A thread joins it under the mutex and is
// counted in `joined` until it leaves; the caller, done with its own share, withdraws the job and
// waits for those that joined. So nobody waits for a thread that has not even woken up.
struct ThreadPool::Impl {
  std::mutex mutex;
  std::condition_variable announced;
  std::condition_variable left;
  Job* job = nullptr;
  std::size_t generation = 0;
  unsigned joined = 0;
  bool stopping = false;
  std::vector<std::thread> threads;

  void run(unsigned thread) {
    std::size_t seen = 0;
    std::unique_lock lock(mutex);
    for (;;) {
      announced.wait(lock, [&] { return stopping || (job != nullptr && generation != seen); });
      if (stopping) return;
      seen = generation;
      Job& current = *job;
      ++joined;
      lock.unlock();
      current.work(thread);
      lock.lock();
      if (--joined == 0) left.notify_one();
    }
  }

  void stop() {
    {
      std::lock_guard lock(mutex);
      stopping = true;
    }
    announced.notify_all();
    for (std::thread& thread : threads) thread.join();
  }
};

ThreadPool::ThreadPool(unsigned threads) : impl_(std::make_unique<Impl>()) {
  if (threads == 0) threads = available_cpus();
  SignalsBlocked blocked;
  impl_->threads.reserve(threads - 1);
  try {
    for (unsigned i = 1; i < threads; ++i) {
      impl_->threads.emplace_back([impl = impl_.get(), i] { impl->run(i); });
    }
  } catch (...) {  // the system refuses more threads
    impl_->stop();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  impl_->stop();
}

unsigned ThreadPool::size() const {
  return static_cast<unsigned>(impl_->threads.size()) + 1;
}

void ThreadPool::parallel_for(std::size_t blocks,
                              const std::function<void(std::size_t, unsigned)>& body) {
  Job job{.blocks = blocks, .body = body};
  if (blocks <= 1 || impl_->threads.empty()) {
    job.work(0);
  } else {
    {
      std::lock_guard lock(impl_->mutex);
      impl_->job = &job;
      ++impl_->generation;
    }
    if (blocks > impl_->threads.size()) {
      impl_->announced.notify_all();
    } else {
      for (std::size_t i = 1; i < blocks; ++i) impl_->announced.notify_one();
    }
    job.work(0);
    std::unique_lock lock(impl_->mutex);
    impl_->job = nullptr;
    impl_->left.wait(lock, [&] { return impl_->joined == 0; });
  }
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace kb::cpu
