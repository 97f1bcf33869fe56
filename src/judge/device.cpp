#include "judge/device.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <charconv>
#include <stdexcept>

#include "build/nvcc.h"
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

std::string DeviceName::text() const {
  return kind == "cpu" ? kind : fmt::format("{}:{}", kind, index);
}

std::expected<DeviceName, std::string> parse_device(const std::string& name) {
  constexpr std::string_view kPrefix = "cuda:";
  if (name == "cpu") return DeviceName{"cpu", 0};
  if (name == "cuda") return DeviceName{"cuda", 0};
  if (name.starts_with(kPrefix)) {
    DeviceName device{"cuda", 0};
    const char* const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, device.index);
    if (error == std::errc() && stop == end && device.index >= 0) return device;
  }
  return std::unexpected(
      fmt::format("there is no device '{}'; devices are cpu, cuda:0, cuda:1 …", name));
}

std::expected<std::unique_ptr<Device>, std::string> open_device(const std::string& name) {
  const auto device = parse_device(name);
  if (!device) return std::unexpected(device.error());
  if (device->kind == "cpu") return std::make_unique<cpu::CpuDevice>();
  return cuda::open_device(device->index);
}

std::expected<std::string, std::string> architecture_of(std::span<const std::string> devices) {
  std::string found;
  for (const auto& name : devices) {
    const auto device = parse_device(name);
    if (!device) return std::unexpected(device.error());
    if (device->kind == "cpu") continue;
    const auto one = cuda::architecture(device->index);
    if (!found.empty() && one != found)
      return std::unexpected(
          "the GPUs of --devices are of different kinds; judge on one kind at a time");
    found = one;
  }
  return found;
}

WorkerNeeds needs_of_python(const Device& device) {
  auto needs = device.worker_needs();
  if (!device.ends_turns()) return needs;
  if (const auto nvcc = build::find_nvcc(build::nvcc_folders())) {
    needs.environment.emplace_back("CUDA_HOME", nvcc->root.string());
    needs.environment.emplace_back("CUDA_PATH", nvcc->root.string());
    needs.folders.push_back(nvcc->root.string());
  }
  return needs;
}

}  // namespace kb::judge
