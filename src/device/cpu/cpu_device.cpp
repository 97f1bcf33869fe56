#include "device/cpu/cpu_device.h"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "device/cpu/compare.h"
#include "device/cpu/shared_memory.h"
#include "device/cpu/stress.h"

namespace kb::cpu {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kCopies = 5;  // of which the fastest is the machine's copy bandwidth

/// False when any of it cannot be read.
bool read_process(pid_t pid, std::uint64_t address, std::span<std::byte> into) {
  while (!into.empty()) {
    iovec local{into.data(), into.size()};
    iovec remote{reinterpret_cast<void*>(address), into.size()};
    const ssize_t got = ::process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (got <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(got));
    address += static_cast<std::uint64_t>(got);
  }
  return true;
}

// Reads a dense tensor out of another process, block by block, while that process is stopped.
class RemoteSource final : public BlockSource {
 public:
  RemoteSource(pid_t pid, std::uint64_t address) : pid_(pid), address_(address) {}
  const std::byte* block(std::size_t offset, std::size_t size, std::byte* scratch) const override {
    return read_process(pid_, address_ + offset, {scratch, size}) ? scratch : nullptr;
  }

 private:
  pid_t pid_;
  std::uint64_t address_;
};

// Lays a strided tensor out densely; empty when it cannot be read. The strides reach no further
// than the caller has checked.
std::vector<std::byte> gather(const TensorSource& source, const TensorSpec& spec) {
  const std::size_t size = size_of(spec.dtype);
  std::uint64_t last = 0;
  for (std::size_t d = 0; d < spec.shape.size(); ++d)
    last += static_cast<std::uint64_t>(source.strides[d] * (spec.shape[d] - 1));
  std::vector<std::byte> remote;
  const std::byte* from = source.data;
  if (from == nullptr) {
    remote.resize((last + 1) * size);
    if (!read_process(source.pid, source.address, remote)) return {};
    from = remote.data();
  }
  std::vector<std::byte> dense(spec.bytes());
  std::vector<std::int64_t> index(spec.shape.size(), 0);
  const std::int64_t count = spec.numel();
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(dense.data() + static_cast<std::size_t>(i) * size,
                from + static_cast<std::size_t>(offset) * size, size);
    for (std::size_t d = index.size(); d-- > 0;) {
      offset += source.strides[d];
      if (++index[d] < spec.shape[d]) break;
      offset -= source.strides[d] * spec.shape[d];
      index[d] = 0;
    }
  }
  return dense;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

}  // namespace

CpuDevice::CpuDevice() = default;

nlohmann::json CpuDevice::describe() const {
  return {{"name", cpu_model()},
          {"cpus", std::thread::hardware_concurrency()},
          {"l3_bytes", last_level_cache_bytes()}};
}

std::expected<std::unique_ptr<Memory>, std::string> CpuDevice::allocate(std::size_t bytes, bool) {
  auto memory = SharedMemory::create(bytes, "kernelbench-data");
  if (!memory) return std::unexpected(memory.error());
  return std::unique_ptr<Memory>(std::move(*memory));
}

// What the kernel could hand out now without swapping; without limit where it does not say.
std::size_t CpuDevice::free_bytes() const {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::size_t kib = 0;
  for (std::string line; std::getline(file, line);)
    if (std::istringstream(line) >> name >> kib && name == "MemAvailable:") return kib * 1024;
  return std::numeric_limits<std::size_t>::max();
}

double CpuDevice::copy_bytes_per_us() {
  if (copy_bytes_per_us_ > 0) return copy_bytes_per_us_;
  const auto buffer = flusher_.buffer();
  const std::size_t bytes = buffer.size() / 2;
  for (int i = 0; i < kCopies; ++i) {
    const auto start = Clock::now();
    cpu::copy(buffer.first(bytes), buffer.subspan(bytes, bytes), pool_);
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    copy_bytes_per_us_ = std::max(copy_bytes_per_us_, static_cast<double>(2 * bytes) / us);
  }
  return copy_bytes_per_us_;
}

void CpuDevice::copy(std::span<std::byte> to, std::span<const std::byte> from) {
  cpu::copy(to, from, pool_);
}

void CpuDevice::upload(std::span<std::byte> to, std::span<const std::byte> from) {
  cpu::copy(to, from, pool_);
}

std::expected<void, std::string> CpuDevice::download(std::span<std::byte> to,
                                                     std::span<const std::byte> from) {
  cpu::copy(to, from, pool_);
  return {};
}

void CpuDevice::poison(std::span<std::byte> memory) {
  cpu::poison(memory, pool_);
}

void CpuDevice::write_guard(std::span<std::byte> band, std::uint64_t secret) {
  cpu::write_guard(band, secret);
}

void CpuDevice::apply_stress(Stress kind, std::span<std::byte> data, DType dtype,
                             std::uint64_t seed) {
  cpu::apply_stress(kind, data, dtype, seed, pool_);
}

void CpuDevice::begin_check(CheckList list, std::uint64_t order_seed) {
  pending_ = std::move(list);
  order_seed_ = order_seed;
}

Comparison CpuDevice::compare_one(const CompareJob& job, std::uint64_t order_seed) {
  const MemorySource reference(job.reference);
  const auto with = [&](const BlockSource& candidate) {
    return cpu::compare(candidate, job.spec, reference, job.reference_dtype, job.tolerance,
                        order_seed, pool_);
  };
  const TensorSource& source = job.candidate;
  if (!source.strides.empty()) {
    const auto dense = gather(source, job.spec);
    if (dense.empty() && job.spec.bytes() > 0) return {.readable = false};
    return with(MemorySource(dense.data()));
  }
  if (source.data != nullptr || job.spec.bytes() == 0) return with(MemorySource(source.data));
  return with(RemoteSource(source.pid, source.address));
}

std::expected<CheckResults, std::string> CpuDevice::end_check() {
  CheckResults results;
  for (const auto& job : pending_.compare) results.compare.push_back(compare_one(job, order_seed_));
  for (const auto& job : pending_.equal) results.equal.push_back(cpu::equal(job.a, job.b, pool_));
  for (const auto& job : pending_.guards)
    results.guards_intact.push_back(guard_intact(job.band, job.secret));
  pending_ = {};
  return results;
}

}  // namespace kb::cpu
