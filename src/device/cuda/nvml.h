// The management library (libnvidia-ml.so.1), where there is one: what a GPU's clocks, power and
// temperature are, and which device node it has. There is no header to rely on, so the few
// declarations are here; they are part of NVML's stable interface.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace kb::cuda {

/// One GPU as the management library sees it. Everything is unknown where the library is missing.
class Management {
 public:
  /// `uuid` as in "GPU-…"; `pci_bus_id` is tried where that is not found.
  Management(const std::string& uuid, const std::string& pci_bus_id);

  /// The N of /dev/nvidiaN.
  std::optional<unsigned> minor_number() const;
  /// Clocks, power, temperature and throttle reasons now; null where unknown.
  nlohmann::json telemetry() const;
  std::optional<unsigned> max_sm_mhz() const;
  std::optional<unsigned> max_memory_mhz() const;

 private:
  void* device_ = nullptr;
};

/// "580.82.07"; empty when unknown.
std::string driver_version();

}  // namespace kb::cuda
