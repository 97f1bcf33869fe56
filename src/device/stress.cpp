#include "device/stress.h"

#include <cmath>
#include <cstddef>
#include <numbers>
#include <stdexcept>

namespace kb {
namespace {

/// The p-quantile of the standard normal distribution, 0 < p <= 1/2: Newton's method on erfc.
/// From 0 the iteration descends to the root monotonically, as the distribution is convex there.
double normal_quantile(double p) {
  double x = 0;
  for (int i = 0; i < 64; ++i) {
    const double excess = 0.5 * std::erfc(-x / std::numbers::sqrt2) - p;
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    const double step = excess / density;
    x -= step;
    if (std::fabs(step) < 1e-14) break;
  }
  return x;
}

}  // namespace

std::vector<double> stress_factors() {
  constexpr std::size_t kCount = std::size_t{1} << kStressFactorBits;
  std::vector<double> factors(kCount);
  for (std::size_t k = 0; k < kCount / 2; ++k) {
    const double q = normal_quantile((static_cast<double>(k) + 0.5) / kCount);
    factors[k] = std::exp(1.5 * q);
    factors[kCount - 1 - k] = std::exp(-1.5 * q);
  }
  return factors;
}

std::string_view name_of(Stress kind) {
  switch (kind) {
    case Stress::scaled_up: return "scaled_up";
    case Stress::scaled_down: return "scaled_down";
    case Stress::sign_flipped: return "sign_flipped";
    case Stress::heavy_tails: return "heavy_tails";
    case Stress::outliers: return "outliers";
    case Stress::small_integers: return "small_integers";
    case Stress::planted: return "planted";
  }
  throw std::invalid_argument("name_of: no such kind of stress");
}

}  // namespace kb
