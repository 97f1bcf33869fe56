#include "judge/physics.h"

#include <algorithm>

#include "card/card.h"

namespace kb::judge {
namespace {

constexpr double kFewestOperations = 0.25;

}  // namespace

Bounds bounds_of(const worker::ProblemSpec& spec, Device& device, const std::string& precision) {
  const double outputs = static_cast<double>(spec.output_bytes());
  const double beyond_cache = std::max(0.0, outputs - static_cast<double>(device.cache_bytes()));
  const double bytes = static_cast<double>(spec.input_bytes() + spec.param_bytes()) + beyond_cache;
  Bounds bounds;
  bounds.realistic_us = bytes / device.copy_bytes_per_us();
  bounds.impossible_us = bounds.realistic_us / 2;
  bounds.work = {bytes, spec.flops, 1e6 * device.copy_bytes_per_us()};
  if (const auto* card = card::of_device(device.describe().value("name", std::string()))) {
    const card::Rates& rates = card->rates;
    const double half = std::max({rates.fp16, rates.bf16, rates.fp32});
    const bool full = precision == "fp32";
    const double own_rate = full ? rates.fp32 : half;
    const double best_rate = full ? std::max(rates.tf32, rates.fp32) : half;
    bounds.impossible_us = 1e6 * std::max(bytes / card->memory_bytes_per_s,
                                          kFewestOperations * spec.flops / best_rate);
    bounds.realistic_us = std::max(bounds.realistic_us, 1e6 * spec.flops / own_rate);
  }
  return bounds;
}

}  // namespace kb::judge
