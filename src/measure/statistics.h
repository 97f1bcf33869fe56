// Order statistics and the bootstrap. Pure functions; randomness comes from the caller's seed.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace kb::measure {

struct Interval {
  double low = 0;
  double high = 0;
};

/// The q-quantile (0 … 1) by linear interpolation between order statistics; NaN for an empty
/// sample.
double quantile(std::span<const double> sample, double q);
double median(std::span<const double> sample);
/// exp(mean(log x)); NaN for an empty sample or one with a value that is not positive.
double geometric_mean(std::span<const double> sample);

/// 95 % percentile bootstrap interval of `statistic` over `size` items: each replicate calls it
/// with `size` indices drawn with replacement. Replicates that are not finite are dropped; {NaN,
/// NaN} when none is left.
Interval bootstrap_ci95(std::size_t size,
                        const std::function<double(std::span<const std::size_t>)>& statistic,
                        std::uint64_t seed, int replicates = 2000);
/// The same for the median of a sample.
Interval median_ci95(std::span<const double> sample, std::uint64_t seed, int replicates = 2000);

}  // namespace kb::measure
