#include "device/cuda/card.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>

#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "device/oldest_driver.h"

namespace kb::cuda {
namespace {

/// 0 when the driver does not say.
int attribute(cudaDeviceAttr which, int index) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, index) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return value;
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

}  // namespace

std::string Card::architecture() const {
  return fmt::format("sm_{}{}", major, minor);
}

std::string Card::compute_capability() const {
  return fmt::format("{}.{}", major, minor);
}

Card card(int index) {
  Card card;
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) {
    cudaGetLastError();
    return card;
  }
  card.name = properties.name;
  card.uuid = uuid_text(properties.uuid);
  card.major = properties.major;
  card.minor = properties.minor;
  card.memory_bytes = properties.totalGlobalMem;
  card.multiprocessors = properties.multiProcessorCount;
  card.l2_bytes = static_cast<std::size_t>(attribute(cudaDevAttrL2CacheSize, index));
  // Two transfers a cycle; the clock is in kHz and the width in bits.
  card.datasheet_bytes_per_s = 2.0 * 1000 * attribute(cudaDevAttrMemoryClockRate, index) *
                               attribute(cudaDevAttrGlobalMemoryBusWidth, index) / 8;
  std::array<char, 32> bus_id{};
  if (cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), index) == cudaSuccess) {
    card.pci_bus_id = bus_id.data();
  } else {
    cudaGetLastError();
  }
  return card;
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

std::string availability() {
  int supported = 0, built = 0, count = 0;
  cudaDriverGetVersion(&supported);
  cudaRuntimeGetVersion(&built);
  const std::string build =
      fmt::format("this kernelbench was built with CUDA {} and needs driver {} or later",
                  cuda_version_text(built), oldest_driver(built / 1000));
  if (supported == 0) {
    return fmt::format(
        "no NVIDIA driver was found (libcuda.so.1): install it, or, in a container, start the "
        "container with access to the GPU; {}",
        build);
  }
  const cudaError_t result = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (result == cudaErrorInsufficientDriver) {
    return fmt::format(
        "the NVIDIA driver is for CUDA up to {}, and {}: update the driver, or build with an older "
        "CUDA toolkit",
        cuda_version_text(supported), build);
  }
  if (result != cudaSuccess || count == 0) {
    return fmt::format(
        "the NVIDIA driver shows no GPU ({}): see that nvidia-smi lists one and that "
        "CUDA_VISIBLE_DEVICES does not hide it",
        result == cudaSuccess ? "it counts none" : cudaGetErrorString(result));
  }
  return fmt::format("{} GPU{}, driver for CUDA {}; {}", count, count == 1 ? "" : "s",
                     cuda_version_text(supported), build);
}

std::string architecture(int index) {
  if (index < 0 || index >= device_count()) return "";
  return card(index).architecture();
}

}  // namespace kb::cuda
