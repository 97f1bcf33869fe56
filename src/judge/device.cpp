#include "judge/device.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <charconv>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "device/cpu/cpu_device.h"
#include "device/cuda/cuda.h"

namespace kb::judge {

std::uint64_t secret_seed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != static_cast<ssize_t>(sizeof seed))
    throw std::runtime_error("getrandom(2) failed");
  return seed;
}

std::string kind_of_device(const std::string& name) {
  return name.substr(0, name.find(':'));
}

std::expected<std::unique_ptr<Device>, std::string> open_device(const std::string& name) {
  if (name == "cpu") return std::make_unique<cpu::CpuDevice>();
  int index = 0;
  if (name != "cuda") {
    const std::string_view prefix = "cuda:";
    const char* end = name.data() + name.size();
    const bool cuda = name.starts_with(prefix) && name.size() > prefix.size();
    const auto parsed = cuda ? std::from_chars(name.data() + prefix.size(), end, index)
                             : std::from_chars_result{end, std::errc::invalid_argument};
    if (parsed.ec != std::errc() || parsed.ptr != end || index < 0)
      return std::unexpected(
          fmt::format("there is no device '{}'; devices are cpu, cuda:0, cuda:1 …", name));
  }
  return cuda::open_device(index);
}

bool make_quiet(Device& device) {
  device.flush_caches();
  if (device.idle()) return true;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  device.flush_caches();
  return device.idle();
}

}  // namespace kb::judge
