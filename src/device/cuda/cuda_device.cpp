#include "device/cuda/cuda_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>
#include <vector>

#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "device/cuda/memory.h"
#include "device/random.h"

namespace kb::cuda {
namespace {

using Clock = std::chrono::steady_clock;

/// Places in `words_`, far enough apart not to share a cache line. The host writes `stop` and
/// `release`, kernels the others.
constexpr std::size_t kClosingWord = 0;
constexpr std::size_t kReleaseWord = 16;
constexpr std::size_t kProbeWord = 32;
constexpr std::size_t kStopWord = 48;
constexpr std::size_t kStartedWord = 64;
constexpr std::size_t kGapWord = 80;
constexpr std::size_t kEndedWord = 96;
constexpr std::size_t kWords = 112;

/// About 5 µs at full clocks.
constexpr std::uint64_t kProbeCycles = 8000;
/// A GPU that was idle for some milliseconds answers 0.2 ms later than a busy one, and every turn
/// is to find it as busy as the null stub's turns did.
constexpr std::chrono::microseconds kRouse{1000};
/// Enough for the GPU to turn to what else is ready to run.
constexpr std::chrono::microseconds kChance{150};
/// What does not run for longer, or answers later, has given way to another context: to switch to
/// it and back takes 0.3 ms. A look at the host's memory takes 2 µs.
constexpr double kMostGapUs = 60;
/// Kernels that wait for the host do not wait for one that is gone.
constexpr std::uint64_t kWatchLimitNs = 5'000'000'000;
constexpr std::uint64_t kHoldLimitNs = 50'000'000;
constexpr int kCalibrationProbes = 30;
constexpr int kCalibrationWatches = 5;
constexpr int kProbeAttempts = 3;
/// What a probe may be late: well over a switch from another context (0.15 ms), well under a time
/// slice of a kernel that is not ours (about 2.4 ms).
constexpr double kLeastLateUs = 400;
constexpr double kMostLateUs = 1500;

constexpr std::chrono::seconds kPatience{10};
constexpr std::size_t kMostCopyBytes = std::size_t{1} << 30;

double us_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double, std::micro>(end - start).count();
}

}  // namespace

CudaDevice::CudaDevice(int index)
    : index_(index), card_(card(index)), management_(card_.uuid, card_.pci_bus_id) {}

CudaDevice::~CudaDevice() {
  cudaSetDevice(index_);
  release();
  if (words_ != nullptr) words_[kStopWord] = watches_;
  for (cudaStream_t stream : {watch_stream_, stream_})
    if (stream != nullptr) cudaStreamSynchronize(stream);
  for (cudaEvent_t event : events_) {
    if (event != nullptr) cudaEventDestroy(event);
  }
  cudaFreeHost(words_);
  checks_.reset();
  factors_memory_.reset();
  junk_.reset();
  for (cudaStream_t stream : {watch_stream_, stream_})
    if (stream != nullptr) cudaStreamDestroy(stream);
  cudaGetLastError();
  // A context that an error has spoilt stays so: the next device in this process needs a new one.
  if (failed()) {
    cudaDeviceReset();
    cudaGetLastError();
  }
}

std::expected<std::unique_ptr<CudaDevice>, std::string> CudaDevice::open(int index) {
  const int count = device_count();
  if (count == 0) return std::unexpected(availability());
  if (index < 0 || index >= count) {
    return std::unexpected(
        fmt::format("there is no GPU cuda:{}: the driver shows {}", index, count));
  }
  std::unique_ptr<CudaDevice> device(new CudaDevice(index));
  if (device->card_.major < 8) {
    return std::unexpected(
        fmt::format("cuda:{} ({}) has compute capability {}, and kernelbench needs 8.0 or later",
                    index, device->card_.name, device->card_.compute_capability()));
  }
  device->prepare();
  if (device->failed()) return std::unexpected(device->error_);
  return device;
}

void CudaDevice::prepare() {
  const char* const doing = "opening it";
  if (!check(cudaSetDevice(index_), doing)) return;
  for (cudaStream_t* stream : {&stream_, &watch_stream_})
    if (!check(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), doing)) return;
  for (cudaEvent_t& event : events_) {
    if (!check(cudaEventCreate(&event), doing)) return;
  }
  // No line of the L2 cache is to outlive a flush. Refused where there is no such carve-out.
  if (cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0) != cudaSuccess) cudaGetLastError();

  void* words = nullptr;
  if (!check(cudaHostAlloc(&words, kWords * sizeof(std::uint64_t), cudaHostAllocMapped), doing))
    return;
  words_ = static_cast<std::uint64_t*>(words);
  std::fill_n(words_, kWords, std::uint64_t{0});

  auto junk = allocate_private(index_, 2 * card_.l2_bytes / 16 * 16);
  if (!junk) {
    error_ = junk.error();
    return;
  }
  junk_ = std::move(*junk);
  if (!check(checks_.emplace().open(card_.multiprocessors), doing)) return;

  // Now, and not when it is first needed, when a candidate may have taken all memory.
  if (!upload_factors()) return;
  // Every kernel that a turn uses runs once, so that none is loaded within a turn.
  begin_watch();
  flush_caches();
  copy(junk_->range(0, 16), junk_->range(16, 16));
  poison(junk_->range(0, 16));
  stop_watch();
  begin_closing();
  closed();
  std::byte* const band = junk_->bytes().data();
  begin_check({.guards = {{.band = {band, std::min<std::size_t>(64, junk_->bytes().size())}}}}, 0);
  if (auto warm = end_check(); !warm) return;
  calibrate_probe();
}

bool CudaDevice::select() {
  return !failed() && check(cudaSetDevice(index_), "selecting it");
}

bool CudaDevice::check(cudaError_t result, const char* doing) {
  if (result != cudaSuccess && !failed()) {
    error_ = fmt::format("cuda:{} failed while {}: {} ({})", index_, doing,
                         cudaGetErrorString(result), cudaGetErrorName(result));
    cudaGetLastError();
  }
  return !failed();
}

std::chrono::steady_clock::time_point CudaDevice::await(std::size_t word, std::uint64_t value,
                                                        const char* doing) {
  const volatile std::uint64_t* const seen = words_ + word;
  Clock::time_point last = Clock::now();
  const Clock::time_point deadline = last + kPatience;
  longest_pause_us_ = 0;
  while (true) {
    const bool there = *seen == value;
    const Clock::time_point now = Clock::now();
    longest_pause_us_ = std::max(longest_pause_us_, us_between(last, now));
    last = now;
    if (there) return now;
    if (now > deadline) {
      if (!failed()) {
        error_ = fmt::format("cuda:{} did not answer within {} s while {}", index_,
                             kPatience.count(), doing);
      }
      return now;
    }
  }
}

// ---- what it is
// ----------------------------------------------------------------------------------

std::string CudaDevice::name() const {
  return fmt::format("cuda:{}", index_);
}

nlohmann::json CudaDevice::describe() const {
  auto or_null = [](auto value, bool known) {
    return known ? nlohmann::json(value) : nlohmann::json();
  };
  int supported = 0, runtime = 0;
  cudaDriverGetVersion(&supported);
  cudaRuntimeGetVersion(&runtime);
  const std::string driver = driver_version();
  const std::optional<unsigned> sm_mhz = management_.max_sm_mhz();
  const std::optional<unsigned> memory_mhz = management_.max_memory_mhz();
  return {
      {"name", card_.name},
      {"index", index_},
      {"uuid", card_.uuid},
      {"compute_capability", card_.compute_capability()},
      {"architecture", card_.architecture()},
      {"memory_bytes", card_.memory_bytes},
      {"l2_bytes", card_.l2_bytes},
      {"sms", card_.multiprocessors},
      {"driver", or_null(driver, !driver.empty())},
      {"cuda_driver_version", cuda_version_text(supported)},
      {"cuda_runtime_version", cuda_version_text(runtime)},
      {"max_sm_mhz", or_null(sm_mhz.value_or(0), sm_mhz.has_value())},
      {"max_mem_mhz", or_null(memory_mhz.value_or(0), memory_mhz.has_value())},
      {"datasheet_bytes_per_s",
       or_null(card_.datasheet_bytes_per_s, card_.datasheet_bytes_per_s > 0)},
      {"idle_probe_us",
       {{"median", probe_median_us_}, {"spread", probe_spread_us_}, {"limit", probe_limit_us_}}},
      {"watch_gap_us", {{"largest", watch_gap_us_}, {"limit", kMostGapUs}}},
  };
}

WorkerNeeds CudaDevice::worker_needs() const {
  WorkerNeeds needs;
  needs.bind_threads = false;
  needs.device_nodes = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
  if (access("/dev/nvidia-uvm-tools", F_OK) == 0)
    needs.device_nodes.emplace_back("/dev/nvidia-uvm-tools");
  needs.device_nodes.push_back(fmt::format(
      "/dev/nvidia{}", management_.minor_number().value_or(static_cast<unsigned>(index_))));
  needs.environment = {{"CUDA_VISIBLE_DEVICES", card_.uuid}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}};
  if (const Driver* cu = driver(); cu != nullptr && !cu->folder.empty()) {
    needs.environment.emplace_back("LD_LIBRARY_PATH", cu->folder);
    needs.folders.push_back(cu->folder);
  }
  return needs;
}

nlohmann::json CudaDevice::telemetry() {
  return management_.telemetry();
}

// ---- memory
// --------------------------------------------------------------------------------------

std::expected<std::unique_ptr<Memory>, std::string> CudaDevice::allocate(std::size_t bytes,
                                                                         bool shared) {
  if (!select()) return std::unexpected(error_);
  auto memory = shared ? allocate_shared(index_, bytes) : allocate_private(index_, bytes);
  if (!memory) return memory;
  if (bytes > 0)
    check(cudaMemsetAsync((*memory)->bytes().data(), 0, bytes, stream_), "clearing new memory");
  // A worker that is handed the descriptor must not write before the zeros are there.
  if (auto done = synchronize(); !done) return std::unexpected(done.error());
  return memory;
}

std::size_t CudaDevice::free_bytes() const {
  std::size_t free = 0, total = 0;
  if (cudaSetDevice(index_) != cudaSuccess || cudaMemGetInfo(&free, &total) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return free;
}

double CudaDevice::copy_bytes_per_us() {
  if (copy_bytes_per_us_ == 0) copy_bytes_per_us_ = measure_copy();
  return copy_bytes_per_us_;
}

double CudaDevice::measure_copy() {
  const char* const doing = "measuring a copy";
  const std::size_t size = std::min(kMostCopyBytes, free_bytes() / 4) / 16 * 16;
  if (size == 0 || !select()) return 0;
  auto from = allocate_private(index_, size);
  auto to = allocate_private(index_, size);
  if (!from || !to) return 0;
  double best = 0;
  for (int i = 0; i < 6; ++i) {  // the first one warms up
    if (!check(cudaEventRecord(events_[0], stream_), doing)) return 0;
    if (!check(cudaMemcpyAsync((*to)->bytes().data(), (*from)->bytes().data(), size,
                               cudaMemcpyDeviceToDevice, stream_),
               doing))
      return 0;
    if (!check(cudaEventRecord(events_[1], stream_), doing)) return 0;
    if (!check(cudaEventSynchronize(events_[1]), doing)) return 0;
    float ms = 0;
    if (!check(cudaEventElapsedTime(&ms, events_[0], events_[1]), doing)) return 0;
    if (i > 0 && ms > 0) best = std::max(best, 2.0 * static_cast<double>(size) / (1000.0 * ms));
  }
  return best;
}

// ---- bulk work
// -----------------------------------------------------------------------------------

void CudaDevice::copy(std::span<std::byte> to, std::span<const std::byte> from) {
  if (to.size() != from.size()) throw std::invalid_argument("copy: spans of different size");
  if (to.empty() || !select()) return;
  check(launch_copy(to.data(), from.data(), to.size(), stream_), "copying");
}

void CudaDevice::upload(std::span<std::byte> to, std::span<const std::byte> from) {
  if (to.size() != from.size()) throw std::invalid_argument("upload: spans of different size");
  if (to.empty() || !select()) return;
  check(cudaMemcpyAsync(to.data(), from.data(), to.size(), cudaMemcpyHostToDevice, stream_),
        "uploading");
  check(cudaStreamSynchronize(stream_), "uploading");
}

std::expected<void, std::string> CudaDevice::download(std::span<std::byte> to,
                                                      std::span<const std::byte> from) {
  if (to.size() != from.size()) throw std::invalid_argument("download: spans of different size");
  if (!to.empty() && select()) {
    check(cudaMemcpyAsync(to.data(), from.data(), to.size(), cudaMemcpyDeviceToHost, stream_),
          "downloading");
  }
  return synchronize();
}

void CudaDevice::poison(std::span<std::byte> memory) {
  if (memory.empty() || !select()) return;
  check(launch_fill(memory.data(), memory.size(), 0xFF, stream_), "poisoning memory");
}

void CudaDevice::write_guard(std::span<std::byte> band, std::uint64_t secret) {
  if (!select()) return;
  check(launch_guard(band.data(), band.size(), secret, stream_), "writing a guard band");
}

bool CudaDevice::upload_factors() {
  const std::vector<double> wide = stress_factors();
  const std::vector<float> narrow(wide.begin(), wide.end());
  const auto wide_bytes = std::as_bytes(std::span(wide));
  const auto narrow_bytes = std::as_bytes(std::span(narrow));
  auto memory = allocate_private(index_, wide_bytes.size() + narrow_bytes.size());
  if (!memory) {
    error_ = memory.error();
    return false;
  }
  factors_memory_ = std::move(*memory);
  upload(factors_memory_->range(0, wide_bytes.size()), wide_bytes);
  upload(factors_memory_->range(wide_bytes.size(), narrow_bytes.size()), narrow_bytes);
  std::byte* const base = factors_memory_->bytes().data();
  factors_.wide = reinterpret_cast<const double*>(base);
  factors_.narrow = reinterpret_cast<const float*>(base + wide_bytes.size());
  return !failed();
}

void CudaDevice::apply_stress(Stress kind, std::span<std::byte> data, DType dtype,
                              std::uint64_t seed) {
  if (!is_floating(dtype) || data.empty()) return;
  const std::size_t size = size_of(dtype);
  if (data.size() % size != 0 || reinterpret_cast<std::uintptr_t>(data.data()) % size != 0)
    throw std::invalid_argument("apply_stress: not a whole number of elements, or not aligned");
  if (!select()) return;
  const std::uint64_t key = random_bits(seed, static_cast<std::uint64_t>(kind));
  check(launch_stress(kind, data.data(), data.size() / size, dtype, key, factors_, stream_),
        "making stress inputs");
}

void CudaDevice::flush_caches() {
  if (!select()) return;
  // Before the writing, or lines that a worker made persistent would survive it. Refused where
  // lines cannot be made persistent. A watch has done it before it began: it waits for kernels.
  if (!watching_ && cudaCtxResetPersistingL2Cache() != cudaSuccess) cudaGetLastError();
  check(launch_junk(junk_->bytes().data(), junk_->bytes().size(), ++flushes_, stream_),
        "flushing the caches");
}

std::expected<void, std::string> CudaDevice::synchronize() {
  if (select()) check(cudaStreamSynchronize(stream_), "waiting for its work");
  if (failed()) return std::unexpected(error_);
  return {};
}

// ---- around a turn
// -------------------------------------------------------------------------------

void CudaDevice::probe() {
  const Clock::time_point start = Clock::now();
  if (!check(launch_delayed_signal(kProbeCycles, words_ + kProbeWord, ++probes_, stream_),
             "probing it"))
    return;
  const double launched_us = us_between(start, Clock::now());
  const double us = us_between(start, await(kProbeWord, probes_, "probing it"));
  // A host that was elsewhere says nothing about the GPU.
  const double pause_us = std::max(longest_pause_us_, launched_us);
  last_probe_us_ = pause_us > kMostGapUs / 2 ? us - pause_us : us;
}

void CudaDevice::calibrate_probe() {
  std::vector<double> us;
  for (int i = -3; i < kCalibrationProbes; ++i) {  // three to warm up
    probe();
    if (failed()) return;
    if (i >= 0) us.push_back(last_probe_us_);
  }
  std::sort(us.begin(), us.end());
  probe_median_us_ = us[us.size() / 2];
  probe_spread_us_ = us[us.size() * 9 / 10] - us[us.size() / 10];
  probe_limit_us_ = probe_median_us_ + std::clamp(10 * probe_spread_us_, kLeastLateUs, kMostLateUs);
  for (int i = 0; i < kCalibrationWatches && !failed(); ++i) {
    begin_watch();
    end_watch();
    watch_gap_us_ = std::max(watch_gap_us_, last_gap_us());
  }
}

bool CudaDevice::idle() {
  if (!synchronize()) return false;
  // A hiccup of the host makes one of them late; a kernel that is not ours, all.
  for (int attempt = 0; attempt < kProbeAttempts; ++attempt) {
    probe();
    if (failed()) return false;
    if (last_probe_us_ <= probe_limit_us_) return true;
  }
  return false;
}

void CudaDevice::begin_watch() {
  ++watches_;
  if (!select()) return;
  if (cudaCtxResetPersistingL2Cache() != cudaSuccess) cudaGetLastError();
  watching_ = true;
  const Watch words{words_ + kStopWord, words_ + kStartedWord, words_ + kGapWord,
                    words_ + kEndedWord};
  if (check(launch_watch(words, watches_, kWatchLimitNs, watch_stream_), "watching it"))
    await(kStartedWord, watches_, "watching it");
  watch_start_ = Clock::now();
}

void CudaDevice::stop_watch() {
  *static_cast<volatile std::uint64_t*>(words_ + kStopWord) = watches_;
  if (!failed()) await(kEndedWord, watches_, "watching it");
  watching_ = false;
}

bool CudaDevice::end_watch() {
  if (!synchronize()) return false;
  while (Clock::now() - watch_start_ < kRouse) {
  }
  stop_watch();
  for (const auto start = Clock::now(); Clock::now() - start < kChance;) {
  }
  // What has run since has taken the GPU from this context, which has to be switched back in.
  probe();
  if (failed()) return false;
  return last_gap_us() <= kMostGapUs && last_probe_us_ <= probe_median_us_ + kMostGapUs;
}

double CudaDevice::last_gap_us() const {
  return static_cast<double>(*static_cast<volatile std::uint64_t*>(words_ + kGapWord)) / 1000;
}

void CudaDevice::begin_closing() {
  ++closings_;
  if (!select()) return;
  check(launch_closing(words_ + kClosingWord, words_ + kReleaseWord, closings_, kHoldLimitNs,
                       stream_),
        "closing a turn");
}

void CudaDevice::release() {
  if (words_ != nullptr) *static_cast<volatile std::uint64_t*>(words_ + kReleaseWord) = closings_;
}

std::optional<std::chrono::steady_clock::time_point> CudaDevice::closed() {
  if (failed()) return Clock::now();
  return await(kClosingWord, closings_, "closing a turn");
}

void CudaDevice::begin_check(CheckList list, std::uint64_t order_seed) {
  if (select() && check(checks_->prepare(std::move(list), order_seed), "preparing a check"))
    check(checks_->launch(stream_), "starting a check");
  release();
}

std::expected<CheckResults, std::string> CudaDevice::end_check() {
  if (auto done = synchronize(); !done) return std::unexpected(done.error());
  CheckResults results;
  if (!check(checks_->finish(stream_, results), "fetching a check's results"))
    return std::unexpected(error_);
  return results;
}

std::expected<std::unique_ptr<Device>, std::string> open_device(int index) {
  return CudaDevice::open(index);
}

}  // namespace kb::cuda
