// What a device reaches here at best: a copy, and PyTorch's matrix products. Measured once, by
// `kernelbench doctor --measure`, and kept in a file of its own for each device and what drives it.
//
//   {"kernelbench_ceilings": 1, "device": "NVIDIA H200", "platform": "driver 580.159.04",
//    "torch": "2.11.0", "measured_at": "2026-11-30T01:20:00Z", "copy_bytes_per_s": 4.2e12,
//    "operations_per_s": {"fp32": …, "tf32": …, "fp16": …, "bf16": …}, "time_slice_us": 2400}
#pragma once

#include <expected>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "device/device.h"
#include "sandbox/sandbox.h"
#include "worker/python_environment.h"

namespace kb::judge {

/// What figures hold for: another driver or another PyTorch may be faster or slower.
struct Setting {
  std::string device;    ///< the model: "NVIDIA H200"
  std::string platform;  ///< "driver 580.159.04"; of a CPU, "16 CPUs"
  std::string torch;     ///< "2.11.0"

  bool operator==(const Setting&) const = default;
};

/// `description` is Device::describe()'s.
Setting setting_of(const nlohmann::json& description, const std::string& torch_version);

struct Ceilings {
  Setting setting;
  std::string measured_at;      ///< UTC: "2026-11-30T01:20:00Z"
  double copy_bytes_per_s = 0;  ///< read and written
  /// Operations per second of matrix products by precision: fp32 (without TF32), fp16, bf16, and
  /// tf32 where the device has it. Never empty.
  std::map<std::string, double> rates;
  /// How long a GPU works for one process while another waits; 0: not known, or no GPU. What the
  /// idle probe allows (1.5 ms, cuda_device.cpp) has to be well below it.
  double time_slice_us = 0;
};

/// Some seconds, in which nothing else should run on the device. Its rates are what PyTorch in a
/// sandboxed worker reaches. Error: one sentence.
std::expected<Ceilings, std::string> measure_ceilings(sandbox::Launcher& launcher,
                                                      const worker::PythonEnvironment& python,
                                                      const std::filesystem::path& package_folder,
                                                      Device& device);

/// Below problem::data_root(). Need not exist.
std::filesystem::path ceilings_file(const Setting& setting);
nlohmann::json to_json(const Ceilings& ceilings);
/// Error: the end of a sentence that begins with the file's name ("is not …").
std::expected<Ceilings, std::string> parse_ceilings(std::string_view text);
/// Null: not measured yet. Error: one sentence (the file cannot be read, is damaged, or is of
/// something else), and nothing is lost by going on without.
std::expected<std::optional<Ceilings>, std::string> load_ceilings(const Setting& setting);

}  // namespace kb::judge
