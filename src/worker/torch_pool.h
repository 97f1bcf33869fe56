// Torch workers started ahead of time. Importing torch takes seconds, so sandboxes are started and
// imported before they are needed; each is used once. While the judge times something the pool is
// paused, so that an import does not compete with the worker on the clock.
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <filesystem>

#include "device/device.h"
#include "sandbox/sandbox.h"
#include "worker/fault.h"
#include "worker/python_environment.h"
#include "worker/worker.h"

namespace kb::worker {

struct TorchPoolOptions {
  PythonEnvironment python;
  std::filesystem::path package_folder;  ///< holds kernelbench_worker/
  unsigned threads = 1;                  ///< of the model: OMP_NUM_THREADS and the like
  std::uint64_t memory_bytes = 8ull << 30;
  WorkerNeeds needs = {};  ///< of the device that the workers will use
};

/// The environment and the CPUs of every worker, native or torch, and the device: its nodes, its
/// driver's folder, its variables. None of the caller's variables, but PATH and the like of our
/// own.
void equip(sandbox::Command& command, unsigned threads, const WorkerNeeds& needs);

/// The command of a torch worker, all but `--fd N`.
sandbox::Command torch_command(const TorchPoolOptions& options);

class TorchPool {
 public:
  TorchPool(sandbox::Launcher& launcher, TorchPoolOptions options)
      : launcher_(launcher), options_(std::move(options)) {}

  /// Starts workers until `count` are waiting; those that have ended meanwhile do not count.
  /// Returns at once.
  std::expected<void, Fault> fill(std::size_t count);
  /// The oldest waiting worker that lives, or one started now. Its hello may still be to come.
  std::expected<Worker, Fault> take();
  /// Stops those that wait until as many resume() have come as pause().
  void pause();
  void resume();
  std::size_t waiting() const { return waiting_.size(); }
  const TorchPoolOptions& options() const { return options_; }

 private:
  std::expected<Worker, Fault> start();
  void drop_dead();

  sandbox::Launcher& launcher_;
  TorchPoolOptions options_;
  std::deque<Worker> waiting_;
  int pauses_ = 0;
};

}  // namespace kb::worker
