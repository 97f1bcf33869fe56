#include "measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace kb::measure {
namespace {
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double quantile_of_sorted(std::span<const double> sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}
}  // namespace

double quantile(std::span<const double> sample, double q) {
  if (sample.empty()) return kNaN;
  std::vector<double> sorted(sample.begin(), sample.end());
  std::ranges::sort(sorted);
  return quantile_of_sorted(sorted, q);
}

double median(std::span<const double> sample) {
  return quantile(sample, 0.5);
}

double geometric_mean(std::span<const double> sample) {
  if (sample.empty()) return kNaN;
  double sum = 0;
  for (const double value : sample) {
    if (!(value > 0)) return kNaN;
    sum += std::log(value);
  }
  return std::exp(sum / static_cast<double>(sample.size()));
}

Interval bootstrap_ci95(std::size_t size,
                        const std::function<double(std::span<const std::size_t>)>& statistic,
                        std::uint64_t seed, int replicates) {
  if (size == 0) return {kNaN, kNaN};
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::size_t> pick(0, size - 1);
  std::vector<std::size_t> indices(size);
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(replicates));
  for (int r = 0; r < replicates; ++r) {
    for (auto& index : indices) index = pick(random);
    if (const double value = statistic(indices); std::isfinite(value)) values.push_back(value);
  }
  if (values.empty()) return {kNaN, kNaN};
  std::ranges::sort(values);
  return {quantile_of_sorted(values, 0.025), quantile_of_sorted(values, 0.975)};
}

Interval median_ci95(std::span<const double> sample, std::uint64_t seed, int replicates) {
  std::vector<double> drawn(sample.size());
  const auto statistic = [&](std::span<const std::size_t> indices) {
    std::ranges::transform(indices, drawn.begin(), [&](std::size_t i) { return sample[i]; });
    return median(drawn);
  };
  return bootstrap_ci95(sample.size(), statistic, seed, replicates);
}

}  // namespace kb::measure
