#include "device/cuda/stress_factors.h"

#include <cmath>
#include <cstddef>
#include <numbers>

#include "device/cuda/kernels.h"

namespace kb::cuda {
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

std::vector<double> log_normal_factors() {
  constexpr std::size_t kCount = std::size_t{1} << kFactorBits;
  std::vector<double> factors(kCount);
  for (std::size_t k = 0; k < kCount / 2; ++k) {
    const double q = normal_quantile((static_cast<double>(k) + 0.5) / kCount);
    factors[k] = std::exp(1.5 * q);
    factors[kCount - 1 - k] = std::exp(-1.5 * q);
  }
  return factors;
}

}  // namespace kb::cuda
