#include "device/cuda/nvml.h"

#include <dlfcn.h>

#include <array>
#include <type_traits>
#include <utility>

namespace kb::cuda {
namespace {

// From NVML's reference manual.
using Handle = void*;
constexpr int kSuccess = 0;
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int kTemperatureGpu = 0;
constexpr std::array<std::pair<unsigned long long, const char*>, 9> kReasons = {{
    {0x1, "gpu_idle"},
    {0x2, "applications_clocks_setting"},
    {0x4, "sw_power_cap"},
    {0x8, "hw_slowdown"},
    {0x10, "sync_boost"},
    {0x20, "sw_thermal_slowdown"},
    {0x40, "hw_thermal_slowdown"},
    {0x80, "hw_power_brake_slowdown"},
    {0x100, "display_clock_setting"},
}};

struct Library {
  int (*init)() = nullptr;
  int (*handle_by_uuid)(const char*, Handle*) = nullptr;
  int (*handle_by_bus_id)(const char*, Handle*) = nullptr;
  int (*minor_number)(Handle, unsigned*) = nullptr;
  int (*clock)(Handle, int, unsigned*) = nullptr;
  int (*max_clock)(Handle, int, unsigned*) = nullptr;
  int (*power)(Handle, unsigned*) = nullptr;
  int (*temperature)(Handle, int, unsigned*) = nullptr;
  int (*reasons)(Handle, unsigned long long*) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
};

/// Functions that a driver does not have stay null.
Library load() {
  Library nvml;
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nvml;
  auto look_up = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
  };
  look_up(nvml.init, "nvmlInit_v2");
  if (nvml.init == nullptr || nvml.init() != kSuccess) return {};
  look_up(nvml.handle_by_uuid, "nvmlDeviceGetHandleByUUID");
  look_up(nvml.handle_by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
  look_up(nvml.minor_number, "nvmlDeviceGetMinorNumber");
  look_up(nvml.clock, "nvmlDeviceGetClockInfo");
  look_up(nvml.max_clock, "nvmlDeviceGetMaxClockInfo");
  look_up(nvml.power, "nvmlDeviceGetPowerUsage");
  look_up(nvml.temperature, "nvmlDeviceGetTemperature");
  look_up(nvml.reasons, "nvmlDeviceGetCurrentClocksEventReasons");
  // The name before driver 535.
  if (nvml.reasons == nullptr) look_up(nvml.reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  look_up(nvml.driver_version, "nvmlSystemGetDriverVersion");
  return nvml;
}

const Library& nvml() {
  static const Library loaded = load();
  return loaded;
}

/// What a query of one number says; nothing without the function, or when it fails.
template <class Function, class... Arguments>
std::optional<unsigned> ask(Function function, Handle device, Arguments... arguments) {
  unsigned value = 0;
  if (function == nullptr || device == nullptr) return std::nullopt;
  if (function(device, arguments..., &value) != kSuccess) return std::nullopt;
  return value;
}

nlohmann::json or_null(std::optional<unsigned> value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

}  // namespace

Management::Management(const std::string& uuid, const std::string& pci_bus_id) {
  const Library& library = nvml();
  if (library.handle_by_uuid != nullptr &&
      library.handle_by_uuid(uuid.c_str(), &device_) == kSuccess)
    return;
  if (library.handle_by_bus_id != nullptr &&
      library.handle_by_bus_id(pci_bus_id.c_str(), &device_) == kSuccess)
    return;
  device_ = nullptr;
}

std::optional<unsigned> Management::minor_number() const {
  return ask(nvml().minor_number, device_);
}

std::optional<unsigned> Management::max_sm_mhz() const {
  return ask(nvml().max_clock, device_, kClockSm);
}

std::optional<unsigned> Management::max_memory_mhz() const {
  return ask(nvml().max_clock, device_, kClockMemory);
}

nlohmann::json Management::telemetry() const {
  const Library& library = nvml();
  nlohmann::json result;
  result["sm_mhz"] = or_null(ask(library.clock, device_, kClockSm));
  result["mem_mhz"] = or_null(ask(library.clock, device_, kClockMemory));
  const std::optional<unsigned> milliwatts = ask(library.power, device_);
  result["power_w"] = milliwatts ? nlohmann::json(*milliwatts / 1000.0) : nlohmann::json();
  result["temperature_c"] = or_null(ask(library.temperature, device_, kTemperatureGpu));
  result["throttle_reasons"] = nullptr;
  unsigned long long bits = 0;
  if (library.reasons != nullptr && device_ != nullptr &&
      library.reasons(device_, &bits) == kSuccess) {
    result["throttle_reasons"] = nlohmann::json::array();
    for (auto [bit, name] : kReasons) {
      if ((bits & bit) != 0) result["throttle_reasons"].push_back(name);
    }
  }
  return result;
}

std::string driver_version() {
  std::array<char, 96> text{};
  if (nvml().driver_version == nullptr ||
      nvml().driver_version(text.data(), static_cast<unsigned>(text.size())) != kSuccess)
    return "";
  return text.data();
}

}  // namespace kb::cuda
