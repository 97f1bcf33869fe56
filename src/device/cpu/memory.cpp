#include "device/cpu/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <fstream>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/cpu/affinity.h"
#include "device/random.h"

namespace kb::cpu {
namespace {

/// Work is shared out by pieces of this size: small beside a last-level cache, so that glibc's
/// memcpy does not change to non-temporal stores (measured no faster here), large beside the cost
/// of a call.
constexpr std::size_t kPieceBytes = std::size_t{256} << 10;

constexpr std::size_t kDefaultCacheBytes = std::size_t{32} << 20;
/// More is some exotic part, or a lie of a hypervisor: the flush would cost more than it brings.
constexpr std::size_t kMostCacheBytes = std::size_t{512} << 20;
/// Taken for a core's private cache where sysfs says nothing.
constexpr std::size_t kDefaultPrivateBytes = std::size_t{2} << 20;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

std::size_t pieces_of(std::size_t bytes) {
  return (bytes + kPieceBytes - 1) / kPieceBytes;
}

/// Calls body(offset, size) for each piece of `bytes` bytes.
template <class Body>
void for_each_piece(std::size_t bytes, ThreadPool& pool, const Body& body) {
  pool.parallel_for(pieces_of(bytes), [&](std::size_t piece, unsigned) {
    std::size_t offset = piece * kPieceBytes;
    body(offset, std::min(kPieceBytes, bytes - offset));
  });
}

/// The first line of a file; empty when it cannot be read.
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Reads sysfs's "32768K".
std::optional<std::size_t> parse_size(const std::string& text) {
  std::size_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value > (std::size_t{1} << 40)) return std::nullopt;
  char unit = end == text.data() + text.size() ? '\0' : *end;
  if (unit == 'K') return value << 10;
  if (unit == 'M') return value << 20;
  return value;
}

struct Cache {
  int level = 0;
  std::size_t bytes = 0;
  std::string cpus;  ///< the list of CPUs that share it: names the instance
};

/// The data and unified caches of one CPU.
std::vector<Cache> caches_of(int cpu) {
  std::vector<Cache> caches;
  for (int index = 0; index < 16; ++index) {
    std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index" +
                         std::to_string(index) + "/";
    std::optional<std::size_t> level = parse_size(first_line(folder + "level"));
    if (!level) break;
    if (first_line(folder + "type") == "Instruction") continue;
    std::optional<std::size_t> bytes = parse_size(first_line(folder + "size"));
    if (!bytes) continue;
    caches.push_back({static_cast<int>(*level), *bytes, first_line(folder + "shared_cpu_list")});
  }
  return caches;
}

/// Bytes of the largest cache below the last level that any CPU has.
std::size_t private_cache_bytes(const std::vector<int>& cpus) {
  std::size_t most = 0;
  for (int cpu : cpus) {
    std::vector<Cache> caches = caches_of(cpu);
    int last = 0;
    for (const Cache& cache : caches) last = std::max(last, cache.level);
    for (const Cache& cache : caches) {
      if (cache.level < last || last <= 2) most = std::max(most, cache.bytes);
    }
  }
  return most == 0 ? kDefaultPrivateBytes : std::min(most, kMostCacheBytes);
}

/// Writes every byte with ordinary stores. Not memset, which from some size on stores past the
/// caches and would leave in them what the flush is to drive out; the counter keeps the compiler
/// from turning the loop into one, and the barrier from dropping stores that nobody reads.
void write_junk(std::byte* memory, std::size_t bytes) {
  for (std::size_t i = 0; i + sizeof i <= bytes; i += sizeof i) {
    std::memcpy(memory + i, &i, sizeof i);
  }
  asm volatile("" : : "r"(memory) : "memory");
}

/// Byte `i` of a guard band is byte i % 8 of the word of i / 8.
std::uint64_t guard_word(std::uint64_t secret, std::size_t place) {
  return random_bits(secret, place);
}

}  // namespace

void copy(std::span<std::byte> to, std::span<const std::byte> from, ThreadPool& pool) {
  if (to.size() != from.size()) throw std::invalid_argument("copy: spans of different size");
  for_each_piece(to.size(), pool, [&](std::size_t offset, std::size_t size) {
    std::memcpy(to.data() + offset, from.data() + offset, size);
  });
}

bool equal(std::span<const std::byte> a, std::span<const std::byte> b, ThreadPool& pool) {
  if (a.size() != b.size()) throw std::invalid_argument("equal: spans of different size");
  std::atomic<bool> same{true};
  for_each_piece(a.size(), pool, [&](std::size_t offset, std::size_t size) {
    if (!same.load(std::memory_order_relaxed)) return;
    if (std::memcmp(a.data() + offset, b.data() + offset, size) != 0) {
      same.store(false, std::memory_order_relaxed);
    }
  });
  return same.load();
}

void poison(std::span<std::byte> memory, ThreadPool& pool) {
  for_each_piece(memory.size(), pool, [&](std::size_t offset, std::size_t size) {
    std::memset(memory.data() + offset, 0xFF, size);
  });
}

void write_guard(std::span<std::byte> band, std::uint64_t secret) {
  for (std::size_t i = 0; i < band.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word = guard_word(secret, i / sizeof word);
    std::memcpy(band.data() + i, &word, std::min(sizeof word, band.size() - i));
  }
}

bool guard_intact(std::span<const std::byte> band, std::uint64_t secret) {
  for (std::size_t i = 0; i < band.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word = guard_word(secret, i / sizeof word);
    if (std::memcmp(band.data() + i, &word, std::min(sizeof word, band.size() - i)) != 0) {
      return false;
    }
  }
  return true;
}

std::size_t last_level_cache_bytes() {
  // A processor may have several last-level caches (one for each core complex): a worker may use
  // all that its CPUs reach.
  int last = 0;
  std::size_t total = 0;
  std::set<std::string> seen;
  for (int cpu : cpus_of(0)) {
    for (const Cache& cache : caches_of(cpu)) {
      if (cache.level < last) continue;
      if (cache.level > last) {
        last = cache.level;
        total = 0;
        seen.clear();
      }
      // Without a list of sharers one instance is assumed.
      if (seen.insert(cache.cpus).second) total += cache.bytes;
    }
  }
  if (total == 0) return kDefaultCacheBytes;
  return std::min(total, kMostCacheBytes);
}

// The buffer has a part for each CPU; whichever thread takes a part moves to that CPU first and
// writes it there. Without the move a thread that wakes late would leave the whole buffer, and so
// the sweep of its core's caches, to another core. A part is at least twice a core's private cache.
CacheFlusher::CacheFlusher(std::size_t llc_bytes, ThreadPool& pool)
    : buffer_(nullptr), bytes_(0), cpus_(cpus_of(0)), pool_(pool) {
  if (cpus_.empty()) cpus_.assign(pool.size(), -1);
  std::size_t part = std::max(2 * llc_bytes / cpus_.size(), 2 * private_cache_bytes(cpus_));
  part_bytes_ = (part + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  bytes_ = part_bytes_ * cpus_.size();
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  buffer_ = static_cast<std::byte*>(memory);
  madvise(memory, bytes_, MADV_HUGEPAGE);  // fewer page faults; a refusal does no harm
  try {
    flush();  // page faults now, not before the first turn
  } catch (...) {
    munmap(buffer_, bytes_);
    throw;
  }
}

CacheFlusher::~CacheFlusher() {
  munmap(buffer_, bytes_);
}

void CacheFlusher::flush() {
  pool_.parallel_for(cpus_.size(), [this](std::size_t part, unsigned) {
    std::optional<StayOn> pinned;  // in vain where the system refuses: then its scheduler decides
    if (cpus_[part] >= 0) pinned.emplace(std::span(&cpus_[part], 1));
    write_junk(buffer_ + part * part_bytes_, part_bytes_);
  });
}

}  // namespace kb::cpu
