// Percentile bootstrap of means over problems.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kb::score {

/// Enough for the second digit of a percentile; 270 problems take some ten milliseconds.
inline constexpr std::size_t kResamples = 2000;
/// Any constant: what matters is that two runs of `score` agree.
inline constexpr std::uint64_t kSeed = 20240613;

struct Interval {
  double low = 0, high = 0;
};

/// A value and the 95 % interval of it.
struct Estimate {
  double value = 0;
  Interval ci95;
};

/// For each of `columns` columns of `rows` (one row a problem, all of one length) the mean over the
/// rows that have a value there, and its 95 % interval from kResamples resamples of the rows, the
/// same resamples for all columns. NaN is no value; a resample without any is dropped; null for a
/// column without any. The same input gives the same answer on every machine. Where all rows agree
/// the interval has no width: a bootstrap cannot see what it never drew.
std::vector<std::optional<Estimate>> bootstrap_means(const std::vector<std::vector<double>>& rows,
                                                     std::size_t columns);

}  // namespace kb::score
