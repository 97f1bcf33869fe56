#include "worker/torch_pool.h"

#include <cstdlib>

#include "worker/cpus.h"

namespace kb::worker {

void equip(sandbox::Command& command, unsigned threads, const WorkerNeeds& needs) {
  const std::string count = std::to_string(threads);
  command.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                         {"HOME", "/tmp"},
                         {"TMPDIR", "/tmp"},
                         {"LC_ALL", "C.UTF-8"},
                         {"OMP_NUM_THREADS", count},
                         {"MKL_NUM_THREADS", count},
                         {"OPENBLAS_NUM_THREADS", count},
                         {"TORCHINDUCTOR_COMPILE_THREADS", "1"},
                         // PyTorch's profiler, which counts operations, has nothing to say about a
                         // missing GPU.
                         {"KINETO_LOG_LEVEL", "99"},
                         // malloc keeps what is freed, as a caching allocator does on a GPU. With
                         // glibc's default an eager model spends much of a large call in page
                         // faults, and any kernel with a preallocated output would look fast.
                         {"MALLOC_MMAP_MAX_", "0"},
                         {"MALLOC_TRIM_THRESHOLD_", "17179869184"},
                         {"MALLOC_TOP_PAD_", "67108864"}};
  if (needs.bind_threads) {
    // Without binding, the scheduler often wakes two threads of a team on one CPU, where the one
    // spins in a barrier until the next tick (4 ms) lets the other run.
    command.environment.emplace_back("OMP_PROC_BIND", "true");
    restrict_cpus(command, threads);
  }
  command.device_nodes = needs.device_nodes;
  command.environment.insert(command.environment.end(), needs.environment.begin(),
                             needs.environment.end());
  for (const auto& folder : needs.folders) command.read_only.push_back({folder, "", true});
}

namespace {

// Where Hugging Face's libraries keep the files of models: the files alone, not the folder above
// with the user's token. Empty where it cannot be told.
std::string model_cache() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  if (const auto cache = variable("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const auto home = variable("HF_HOME"); !home.empty()) return home + "/hub";
  if (const auto cache = variable("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/huggingface/hub";
  const auto home = variable("HOME");
  return home.empty() ? home : home + "/.cache/huggingface/hub";
}

// A problem or a candidate may call from_pretrained: it finds what has been downloaded before.
void show_model_cache(sandbox::Command& command) {
  command.environment.insert(command.environment.end(),
                             {{"HF_HUB_OFFLINE", "1"}, {"HF_HUB_DISABLE_TELEMETRY", "1"}});
  const auto cache = model_cache();
  if (!cache.starts_with('/')) return;
  command.environment.emplace_back("HF_HUB_CACHE", cache);
  command.read_only.push_back({cache, "", true});
}

}  // namespace

sandbox::Command torch_command(const TorchPoolOptions& options) {
  sandbox::Command command;
  command.argv = {options.python.executable, "-I", "-B",
                  (options.package_folder / "kernelbench_worker/__main__.py").string()};
  equip(command, options.threads, options.needs);
  for (const auto& folder : options.python.folders) command.read_only.push_back({folder, "", true});
  command.read_only.push_back({options.package_folder.string(), "", false});
  if (const auto& root = options.python.thunderkittens; !root.empty()) {
    command.environment.emplace_back("THUNDERKITTENS_ROOT", root);
    command.read_only.push_back({root, "", false});
  }
  command.limits.memory_bytes = options.memory_bytes;
  // Compilers and autotuners in the first call start processes by the CPU, each with its threads.
  command.limits.max_processes = 1024;
  // A JIT compiler in the first call (torch.compile) writes precompiled headers of 100 MB and more;
  // the memory limit bounds them.
  command.limits.max_file_bytes = command.limits.tmpfs_bytes = std::uint64_t{1} << 30;
  show_model_cache(command);
  return command;
}

std::expected<Worker, Fault> TorchPool::start() {
  return Worker::start(launcher_, torch_command(options_));
}

// Where memory runs out, the kernel may well choose one that only waits.
void TorchPool::drop_dead() {
  std::erase_if(waiting_, [](Worker& worker) {
    return worker.process().wait(std::chrono::milliseconds(0)).has_value();
  });
}

std::expected<void, Fault> TorchPool::fill(std::size_t count) {
  drop_dead();
  while (waiting_.size() < count) {
    auto worker = start();
    if (!worker) return std::unexpected(worker.error());
    waiting_.push_back(std::move(*worker));
  }
  return {};
}

std::expected<Worker, Fault> TorchPool::take() {
  drop_dead();
  if (waiting_.empty()) return start();
  Worker worker = std::move(waiting_.front());
  waiting_.pop_front();
  worker.resume();
  return worker;
}

void TorchPool::pause() {
  if (pauses_++ > 0) return;
  for (auto& worker : waiting_) worker.pause();
}

void TorchPool::resume() {
  if (--pauses_ > 0) return;
  for (auto& worker : waiting_) worker.resume();
}

}  // namespace kb::worker
