#include "judge/physics.h"

#include <algorithm>

#include "card/card.h"

namespace kb::judge {
namespace {

constexpr double kFewestOperations = 0.25;

// What has been measured for a precision; 0 where it has not. Operands of half the size can be
// computed with as fp32, where that is faster (as on most CPUs).
double measured_rate(const Ceilings& ceilings, const std::string& precision) {
  const auto rate = [&](const std::string& name) {
    const auto it = ceilings.rates.find(name);
    return it == ceilings.rates.end() ? 0.0 : it->second;
  };
  const double own = rate(precision);
  return own > 0 ? std::max(own, rate("fp32")) : 0;
}

}  // namespace

DeviceFigures figures_of(Device& device) {
  return {device.describe().value("name", std::string()), static_cast<double>(device.cache_bytes()),
          device.copy_bytes_per_us()};
}

Bounds bounds_of(const worker::ProblemSpec& spec, const DeviceFigures& device,
                 const std::string& precision, const std::optional<Ceilings>& measured) {
  const double outputs = static_cast<double>(spec.output_bytes());
  const double beyond_cache = std::max(0.0, outputs - device.cache_bytes);
  const double bytes = static_cast<double>(spec.input_bytes() + spec.param_bytes()) + beyond_cache;
  Bounds bounds;
  bounds.realistic_us = bytes / device.copy_bytes_per_us;
  bounds.impossible_us = bounds.realistic_us / 2;
  Work& work = bounds.work;
  work = {bytes, spec.flops, 1e6 * device.copy_bytes_per_us};
  work.measured = measured;
  if (const auto* card = card::of_device(device.name)) {
    const card::Rates& rates = card->rates;
    const double half = std::max({rates.fp16, rates.bf16, rates.fp32});
    const bool full = precision == "fp32";
    const double best_rate = full ? std::max(rates.tf32, rates.fp32) : half;
    bounds.impossible_us = 1e6 * std::max(bytes / card->memory_bytes_per_s,
                                          kFewestOperations * spec.flops / best_rate);
    work.operations_per_s = full ? rates.fp32 : half;
    work.rate_source = RateSource::datasheet;
  }
  if (const double rate = measured ? measured_rate(*measured, precision) : 0; rate > 0) {
    work.operations_per_s = rate;
    work.rate_source = RateSource::measured;
  }
  if (work.operations_per_s > 0)
    bounds.realistic_us = std::max(bounds.realistic_us, 1e6 * spec.flops / work.operations_per_s);
  return bounds;
}

}  // namespace kb::judge
