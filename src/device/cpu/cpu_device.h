// The device "cpu": the judge's own threads, its cache flusher, memory shared by memfd. Everything
// is done when a call returns. A turn ends with the stop of the worker's process.
#pragma once

#include "device/cpu/memory.h"
#include "device/cpu/thread_pool.h"
#include "device/device.h"

namespace kb::cpu {

class CpuDevice final : public Device {
 public:
  CpuDevice();

  std::string name() const override { return "cpu"; }
  nlohmann::json describe() const override;
  WorkerNeeds worker_needs() const override { return {}; }
  std::expected<std::unique_ptr<Memory>, std::string> allocate(std::size_t bytes,
                                                               bool shared) override;
  std::size_t free_bytes() const override;
  std::size_t cache_bytes() const override { return last_level_cache_bytes(); }
  double copy_bytes_per_us() override;

  void copy(std::span<std::byte> to, std::span<const std::byte> from) override;
  void upload(std::span<std::byte> to, std::span<const std::byte> from) override;
  std::expected<void, std::string> download(std::span<std::byte> to,
                                            std::span<const std::byte> from) override;
  void poison(std::span<std::byte> memory) override;
  void write_guard(std::span<std::byte> band, std::uint64_t secret) override;
  void apply_stress(Stress kind, std::span<std::byte> data, DType dtype,
                    std::uint64_t seed) override;
  void flush_caches() override { flusher_.flush(); }
  std::expected<void, std::string> synchronize() override { return {}; }

  /// A frozen process does nothing on a CPU.
  bool idle() override { return true; }
  bool ends_turns() const override { return false; }
  void begin_watch() override {}
  bool end_watch() override { return true; }
  void begin_closing() override {}
  void release() override {}
  void begin_check(CheckList list, std::uint64_t order_seed) override;
  std::optional<std::chrono::steady_clock::time_point> closed() override { return std::nullopt; }
  std::expected<CheckResults, std::string> end_check() override;
  nlohmann::json telemetry() override { return nullptr; }

 private:
  Comparison compare_one(const CompareJob& job, std::uint64_t order_seed);

  ThreadPool pool_;
  CacheFlusher flusher_{last_level_cache_bytes(), pool_};
  CheckList pending_;  // carried out by end_check(), when the worker has been stopped
  std::uint64_t order_seed_ = 0;
  double copy_bytes_per_us_ = 0;
};

}  // namespace kb::cpu
