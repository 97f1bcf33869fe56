// Devices by the names that users give them, and the judge's random numbers.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>

#include "device/device.h"

namespace kb::judge {

/// 64 bits from getrandom(2): seeds that no candidate can foresee.
std::uint64_t secret_seed();

/// A device's name taken apart: "cpu", "cuda:0", … ("cuda" is "cuda:0").
struct DeviceName {
  std::string kind;  ///< "cpu" or "cuda": what workers are told
  int index = 0;

  std::string text() const;  ///< the name in full
};
/// Error: one sentence.
std::expected<DeviceName, std::string> parse_device(const std::string& name);
std::expected<std::unique_ptr<Device>, std::string> open_device(const std::string& name);
/// The part of a device's name that workers are told: "cpu" or "cuda".
std::string kind_of_device(const std::string& name);
/// What kernels for `devices`, all of one kind, are compiled for: "sm_90", empty for the CPU.
/// Error: one sentence (GPUs of different kinds: a kernel is built for one).
std::expected<std::string, std::string> architecture_of(std::span<const std::string> devices);
/// What a torch worker needs to use the device. On a GPU that includes CUDA's toolkit, where there
/// is one: some languages call its compiler in the first call.
WorkerNeeds needs_of_python(const Device& device);

}  // namespace kb::judge
