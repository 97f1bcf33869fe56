// What the judge asks of a device: memory that a worker can be given, and bulk work on it.
//
// Every operation is the trusted side's, in the judge's own process. Spans of device memory are
// addresses that only the device may follow (on the CPU they are ordinary memory). Operations are
// carried out in the order of the calls; on a GPU they are enqueued, and synchronize(), download()
// and end_check() wait. A failure (a lost context, an impossible launch) is kept and reported by
// the next of those; after one the device is of no use any more, and a new one is to be made.
// One thread uses a device at a time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/comparison.h"
#include "device/stress.h"
#include "device/tensor.h"

namespace kb {

/// Bytes of guard band on each side of an output slot.
inline constexpr std::size_t kGuardBytes = 4096;

/// A piece of device memory, owned. Its address never changes.
class Memory {
 public:
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::span<std::byte> bytes() const { return {base_, size_}; }
  std::span<std::byte> range(std::size_t offset, std::size_t size) const {
    return bytes().subspan(offset, size);
  }
  /// The descriptor with which a worker maps the same memory; -1 where it is private to the judge.
  virtual int fd() const = 0;

 protected:
  Memory() = default;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

/// Where a candidate's tensor lies.
struct TensorSource {
  const std::byte* data = nullptr;    ///< in device memory; null: in the memory of process `pid`
  pid_t pid = 0;                      ///< a stopped process (CPU only)
  std::uint64_t address = 0;          ///< of the first element, there
  std::vector<std::int64_t> strides;  ///< in elements, none negative; empty: dense and row-major
};

/// A candidate's tensor against a dense row-major reference of `reference_dtype` (float64 for the
/// truth of a floating tensor; otherwise spec.dtype).
struct CompareJob {
  TensorSource candidate;
  TensorSpec spec;
  const std::byte* reference = nullptr;
  DType reference_dtype = DType::float32;
  Tolerance tolerance;
};
struct EqualJob {
  std::span<const std::byte> a, b;  ///< of equal size
};
/// Is this band what write_guard(band, secret) wrote?
struct GuardJob {
  std::span<const std::byte> band;
  std::uint64_t secret = 0;
};
struct CheckList {
  std::vector<CompareJob> compare;
  std::vector<EqualJob> equal;
  std::vector<GuardJob> guards;
};
struct CheckResults {
  std::vector<Comparison> compare;  ///< in the order of the jobs, as the next two
  std::vector<bool> equal;
  std::vector<bool> guards_intact;
};

/// What a worker's sandbox must show of the host so that the worker can use this device.
struct WorkerNeeds {
  std::vector<std::string> device_nodes;  ///< absolute paths, those of this device only
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> folders;  ///< read-only
  /// Each thread of a worker keeps to a CPU of its own, the first ones of the machine: where these
  /// are what is timed. Workers at work side by side would share them: the main threads of all of
  /// them the first one.
  bool bind_threads = true;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;  ///< as users write it: "cpu", "cuda:0"
  /// What this is, for people and for results: model, driver, memory …
  virtual nlohmann::json describe() const = 0;
  virtual WorkerNeeds worker_needs() const = 0;

  /// All zero. `shared`: with a descriptor for a worker. Error: one sentence.
  virtual std::expected<std::unique_ptr<Memory>, std::string> allocate(std::size_t bytes,
                                                                       bool shared) = 0;
  virtual std::size_t free_bytes() const = 0;
  /// Of the last-level cache.
  virtual std::size_t cache_bytes() const = 0;
  /// What a large copy reaches, bytes read and written together; measured once.
  virtual double copy_bytes_per_us() = 0;

  virtual void copy(std::span<std::byte> to, std::span<const std::byte> from) = 0;
  /// From and to ordinary memory; done when they return.
  virtual void upload(std::span<std::byte> to, std::span<const std::byte> from) = 0;
  virtual std::expected<void, std::string> download(std::span<std::byte> to,
                                                    std::span<const std::byte> from) = 0;
  /// Fills with 0xFF: a NaN in every floating type, -1 in the signed integers.
  virtual void poison(std::span<std::byte> memory) = 0;
  /// Writes the guard pattern (a function of `secret` and of the place in the band).
  virtual void write_guard(std::span<std::byte> band, std::uint64_t secret) = 0;
  /// Transforms a dense floating tensor in place; integers and bools are left as they are.
  virtual void apply_stress(Stress kind, std::span<std::byte> data, DType dtype,
                            std::uint64_t seed) = 0;
  /// Writes twice the last-level cache, and (GPU) takes back what lines were made persistent.
  virtual void flush_caches() = 0;
  virtual std::expected<void, std::string> synchronize() = 0;

  // ---- around a turn ----------------------------------------------------------------------------
  /// True: the device itself tells when a turn was over, and the check is to be enqueued at once.
  /// False (CPU): a turn is over when the worker's process has been stopped, and is checked then.
  virtual bool ends_turns() const { return true; }
  /// All earlier work is done when this returns. False: something that is not ours runs on the
  /// device, as a known small kernel shows that takes much longer than it should.
  virtual bool idle() = 0;
  /// Watches the device from here on: nothing but our own work may run on it. Workers are stopped,
  /// but what they have queued may wait for a word that we are about to write. No memory may be
  /// allocated or freed until the end.
  virtual void begin_watch() = 0;
  /// Ends it: all earlier work is done when this returns, what else was ready to run has had its
  /// chance, and the device is awake. False: something else has run.
  virtual bool end_watch() = 0;
  /// The worker has said `done`: enqueues the small kernel that ends the turn. It then keeps the
  /// device to itself, until begin_check() or release(): no work that comes late finds a gap.
  virtual void begin_closing() = 0;
  virtual void release() = 0;
  /// Enqueues a check, and releases the device to it. Blocks are visited in an order that
  /// `order_seed` decides and that changes no result.
  virtual void begin_check(CheckList list, std::uint64_t order_seed) = 0;
  /// The moment when the small kernel had come to run; none where ends_turns() is false.
  virtual std::optional<std::chrono::steady_clock::time_point> closed() = 0;
  virtual std::expected<CheckResults, std::string> end_check() = 0;

  /// Clocks, power, temperature and throttle reasons now; null where nothing is known.
  virtual nlohmann::json telemetry() = 0;
};

}  // namespace kb
