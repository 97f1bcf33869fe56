// `doctor --measure`, and what `doctor` says of earlier measurements.

#include <fmt/format.h>

#include "cli/failure.h"
#include "cli/finding.h"
#include "cli/judging.h"
#include "cli/output_file.h"
#include "judge/ceilings.h"
#include "judge/device.h"
#include "problem/installation.h"

namespace kb::cli {
namespace {

namespace fs = std::filesystem;

std::string rate_text(double per_s) {
  return per_s >= 1e12 ? fmt::format("{:.4g} TFLOP/s", per_s / 1e12)
                       : fmt::format("{:.3g} GFLOP/s", per_s / 1e9);
}

// "copy 4211 GB/s, bf16 790.1 TFLOP/s, …"
std::string figures(const judge::Ceilings& ceilings) {
  std::string text = fmt::format("copy {:.4g} GB/s", ceilings.copy_bytes_per_s / 1e9);
  for (const auto& [precision, rate] : ceilings.rates)
    text += fmt::format(", {} {}", precision, rate_text(rate));
  if (ceilings.time_slice_us > 0)
    text += fmt::format(", time slice {:.2g} ms", ceilings.time_slice_us / 1000);
  return text;
}

}  // namespace

Finding examine_ceilings(const std::string& device, const nlohmann::json& description,
                         const std::string& torch_version) {
  const auto setting = judge::setting_of(description, torch_version);
  Finding finding{"ceilings of " + device, "", Finding::State::note};
  const auto ceilings = judge::load_ceilings(setting);
  if (!ceilings) {
    finding.detail = ceilings.error();
  } else if (!*ceilings) {
    finding.detail = fmt::format(
        "{} with {} and PyTorch {} has not been measured; `kernelbench doctor --measure --device "
        "{}` does it once, for the speed of light",
        setting.device, setting.platform, setting.torch, device);
  } else {
    finding.state = Finding::State::ready;
    finding.detail = fmt::format("measured {} ({}, PyTorch {}): {}", (*ceilings)->measured_at,
                                 setting.platform, setting.torch, figures(**ceilings));
  }
  return finding;
}

void measure_and_store(const std::vector<std::string>& devices, const std::string& python_option) {
  const auto root = problem::installation_root();
  const auto python =
      value_or_usage_error(worker::probe_python(worker::choose_python(python_option, root)));
  const auto launcher = make_launcher({});
  for (const auto& name : devices) {
    const auto device = value_or_usage_error(judge::open_device(name));
    fmt::print(stderr, "measuring {}: some seconds, in which it should have nothing else to do\n",
               name);
    const auto ceilings =
        value_or_usage_error(judge::measure_ceilings(*launcher, python, root / "python", *device));
    const fs::path file = judge::ceilings_file(ceilings.setting);
    std::error_code ignored;  // shows when the file is written
    fs::create_directories(file.parent_path(), ignored);
    write_output_file(file.string(), judge::to_json(ceilings).dump(2) + "\n");
  }
}

}  // namespace kb::cli
