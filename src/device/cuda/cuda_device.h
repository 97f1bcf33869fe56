// A GPU as the judge's device: one non-blocking stream carries everything, and a second one the
// kernel that watches over it.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "device/cuda/card.h"
#include "device/cuda/check_plan.h"
#include "device/cuda/kernels.h"
#include "device/cuda/nvml.h"
#include "device/device.h"

namespace kb::cuda {

class CudaDevice final : public Device {
 public:
  static std::expected<std::unique_ptr<CudaDevice>, std::string> open(int index);
  ~CudaDevice() override;

  std::string name() const override;
  nlohmann::json describe() const override;
  WorkerNeeds worker_needs() const override;

  std::expected<std::unique_ptr<Memory>, std::string> allocate(std::size_t bytes,
                                                               bool shared) override;
  std::size_t free_bytes() const override;
  std::size_t cache_bytes() const override { return card_.l2_bytes; }
  double copy_bytes_per_us() override;

  void copy(std::span<std::byte> to, std::span<const std::byte> from) override;
  void upload(std::span<std::byte> to, std::span<const std::byte> from) override;
  std::expected<void, std::string> download(std::span<std::byte> to,
                                            std::span<const std::byte> from) override;
  void poison(std::span<std::byte> memory) override;
  void write_guard(std::span<std::byte> band, std::uint64_t secret) override;
  void apply_stress(Stress kind, std::span<std::byte> data, DType dtype,
                    std::uint64_t seed) override;
  void flush_caches() override;
  std::expected<void, std::string> synchronize() override;

  bool idle() override;
  void begin_watch() override;
  bool end_watch() override;
  void begin_closing() override;
  void release() override;
  void begin_check(CheckList list, std::uint64_t order_seed) override;
  std::optional<std::chrono::steady_clock::time_point> closed() override;
  std::expected<CheckResults, std::string> end_check() override;
  nlohmann::json telemetry() override;

  /// How long the last probe took, from launch to completion as the host sees it, without the
  /// longest time in which the host did not look.
  double last_probe_us() const { return last_probe_us_; }
  /// The longest time in which the last watch did not run.
  double last_gap_us() const;

 private:
  explicit CudaDevice(int index);

  void prepare();
  void calibrate_probe();
  void probe();
  void stop_watch();
  double measure_copy();
  bool upload_factors();

  bool failed() const { return !error_.empty(); }
  /// Makes this the calling thread's GPU; false when the device is of no use any more.
  bool select();
  /// Remembers the first failure. True when there is none.
  bool check(cudaError_t result, const char* doing);
  /// Spins until `word` holds `value`; gives up after a while, remembering that as a failure.
  std::chrono::steady_clock::time_point await(std::size_t word, std::uint64_t value,
                                              const char* doing);

  int index_;
  Card card_;
  Management management_;
  std::string error_;
  cudaStream_t stream_ = nullptr, watch_stream_ = nullptr;
  std::array<cudaEvent_t, 2> events_{};

  std::uint64_t* words_ = nullptr;  ///< pinned; what kernels and the host tell each other
  std::uint64_t closings_ = 0;
  std::uint64_t watches_ = 0;
  bool watching_ = false;
  std::chrono::steady_clock::time_point watch_start_;
  double longest_pause_us_ = 0;  ///< of the host, in the last await()
  std::uint64_t probes_ = 0;
  double last_probe_us_ = 0;
  double probe_median_us_ = 0, probe_spread_us_ = 0, probe_limit_us_ = 0;
  double watch_gap_us_ = 0;  ///< the largest when it was opened

  std::unique_ptr<Memory> junk_;
  std::uint32_t flushes_ = 0;
  std::unique_ptr<Memory> factors_memory_;
  StressFactors factors_;
  std::optional<CheckQueue> checks_;  ///< always there; gone before the context is
  double copy_bytes_per_us_ = 0;
};

}  // namespace kb::cuda
