#include "worker/heap/heap.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>

namespace {

constexpr std::uintptr_t kAlignment = 512;

// Addresses are numbers here: nothing is read or written there.
class Heap {
 public:
  bool init(std::uintptr_t base, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (!used_.empty() || base % kAlignment != 0) return false;
    free_.clear();
    bytes -= bytes % kAlignment;
    if (bytes > 0) free_.emplace(base, bytes);
    return true;
  }

  std::uintptr_t alloc(std::size_t size) {
    const std::lock_guard lock(mutex_);
    size = (size + kAlignment - 1) / kAlignment * kAlignment;
    for (auto place = free_.begin(); place != free_.end(); ++place) {
      const auto [address, room] = *place;
      if (room < size) continue;
      free_.erase(place);
      if (room > size) free_.emplace(address + size, room - size);
      used_.emplace(address, size);
      used_bytes_ += size;
      return address;
    }
    return 0;
  }

  void free(std::uintptr_t address) {
    const std::lock_guard lock(mutex_);
    const auto found = used_.find(address);
    if (found == used_.end()) return;
    std::size_t size = found->second;
    used_bytes_ -= size;
    used_.erase(found);
    auto next = free_.lower_bound(address);
    if (next != free_.end() && next->first == address + size) {
      size += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == address) {
        previous->second += size;
        return;
      }
    }
    free_.emplace(address, size);
  }

  std::size_t used() {
    const std::lock_guard lock(mutex_);
    return used_bytes_;
  }

 private:
  std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> free_;  // by address; never two that touch
  std::map<std::uintptr_t, std::size_t> used_;
  std::size_t used_bytes_ = 0;
};

// Never destroyed: PyTorch frees tensors until the process ends.
Heap& heap() {
  static Heap& instance = *new Heap;
  return instance;
}

std::uintptr_t number(void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace

extern "C" {

int kb_heap_init(void* base, size_t bytes) {
  return heap().init(number(base), bytes) ? 0 : 1;
}

void* kb_heap_alloc(ssize_t size, int, void*) {
  if (size <= 0) return nullptr;
  return reinterpret_cast<void*>(heap().alloc(static_cast<std::size_t>(size)));
}

void kb_heap_free(void* pointer, ssize_t, int, void*) {
  heap().free(number(pointer));
}

size_t kb_heap_used() {
  return heap().used();
}

}  // extern "C"
