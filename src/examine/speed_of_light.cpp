#include "examine/speed_of_light.h"

#include <algorithm>

namespace kb::examine {
namespace {

constexpr double kUsPerS = 1e6;

// A rate that is not published bounds nothing.
double time_us(double amount, double rate) {
  return rate > 0 ? kUsPerS * amount / rate : 0;
}

}  // namespace

double SpeedOfLight::us() const {
  return std::max(memory_us, tensor_us);
}

SpeedOfLight speed_of_light(const Description& description, const card::Card& card,
                            const std::string& precision) {
  const auto& spec = description.spec;
  const double cache = static_cast<double>(std::max(card.l2_bytes, card.llc_bytes));
  // Floating tensors of half the size; what is not fp32 in the file is counted as it is.
  const double scale = precision == "fp32" ? 1 : 0.5;
  const double bytes =
      scale * (static_cast<double>(spec.input_bytes() + spec.param_bytes()) +
               std::max(0.0, static_cast<double>(spec.output_bytes()) - cache / scale));
  const double tensor_rate = std::max(precision == "fp32"   ? card.rates.tf32
                                      : precision == "fp16" ? card.rates.fp16
                                                            : card.rates.bf16,
                                      card.rates.fp32);
  SpeedOfLight light;
  light.memory_us = time_us(bytes, card.memory_bytes_per_s);
  light.tensor_us = std::max(time_us(description.matrix_operations, tensor_rate),
                             time_us(description.other_operations, card.rates.fp32));
  light.vector_us =
      time_us(description.matrix_operations + description.other_operations, card.rates.fp32);
  return light;
}

}  // namespace kb::examine
