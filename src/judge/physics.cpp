#include "judge/physics.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kb::judge {
namespace {

constexpr double kFewestOperations = 0.25;

struct Entry {
  std::string_view name;  // a part of the driver's name; the first that is found counts
  Card card;
};

// From NVIDIA's datasheets, without sparsity; the highest clock of the family's variants.
constexpr double kTera = 1e12;
constexpr std::array kCards = {
    Entry{"B200", {8.0 * kTera, 80 * kTera, 1200 * kTera, 2500 * kTera}},
    Entry{"GH200", {4.9 * kTera, 67 * kTera, 495 * kTera, 990 * kTera}},
    Entry{"H200", {4.8 * kTera, 67 * kTera, 495 * kTera, 990 * kTera}},
    Entry{"H100 PCIe", {2.0 * kTera, 51 * kTera, 378 * kTera, 756 * kTera}},
    Entry{"H100 NVL", {3.9 * kTera, 60 * kTera, 418 * kTera, 835 * kTera}},
    Entry{"H100", {3.35 * kTera, 67 * kTera, 495 * kTera, 990 * kTera}},
    Entry{"A100", {2.04 * kTera, 19.5 * kTera, 156 * kTera, 312 * kTera}},
    Entry{"L40S", {0.864 * kTera, 91.6 * kTera, 183 * kTera, 366 * kTera}},
    Entry{"L40", {0.864 * kTera, 90.5 * kTera, 181 * kTera, 362 * kTera}},
    Entry{"L4", {0.3 * kTera, 30.3 * kTera, 60 * kTera, 121 * kTera}},
    Entry{"RTX 4090", {1.01 * kTera, 83 * kTera, 83 * kTera, 166 * kTera}},
    Entry{"RTX 3090", {0.94 * kTera, 36 * kTera, 36 * kTera, 71 * kTera}},
};

}  // namespace

std::optional<Card> card_of(const std::string& name) {
  const auto found = std::ranges::find_if(
      kCards, [&](const Entry& entry) { return name.find(entry.name) != std::string::npos; });
  if (found == kCards.end()) return std::nullopt;
  return found->card;
}

Bounds bounds_of(const worker::ProblemSpec& spec, Device& device, const std::string& precision) {
  const double outputs = static_cast<double>(spec.output_bytes());
  const double beyond_cache = std::max(0.0, outputs - static_cast<double>(device.cache_bytes()));
  const double bytes = static_cast<double>(spec.input_bytes() + spec.param_bytes()) + beyond_cache;
  Bounds bounds;
  bounds.realistic_us = bytes / device.copy_bytes_per_us();
  bounds.impossible_us = bounds.realistic_us / 2;
  if (const auto card = card_of(device.describe().value("name", std::string()))) {
    const bool full = precision == "fp32";
    const double own_rate = full ? card->fp32_flops : card->half_flops;
    const double best_rate = full ? card->tf32_flops : card->half_flops;
    bounds.impossible_us =
        1e6 * std::max(bytes / card->bytes_per_s, kFewestOperations * spec.flops / best_rate);
    bounds.realistic_us = std::max(bounds.realistic_us, 1e6 * spec.flops / own_rate);
  }
  return bounds;
}

}  // namespace kb::judge
