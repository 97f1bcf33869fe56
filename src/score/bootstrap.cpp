#include "score/bootstrap.h"

#include <algorithm>
#include <cstdint>
#include <random>

namespace kb::score {
namespace {

// Enough for the second digit of a percentile; 250 problems take a few milliseconds.
constexpr std::size_t kResamples = 2000;
// Any constant: what matters is that two runs of `score` agree.
constexpr std::uint64_t kSeed = 20240613;

}  // namespace

std::vector<Interval> bootstrap_fractions(const std::vector<std::vector<bool>>& hits,
                                          std::size_t columns) {
  std::vector<Interval> intervals(columns);
  if (hits.empty()) return intervals;
  std::mt19937_64 random(kSeed);
  std::vector<std::vector<std::uint32_t>> counts(columns,
                                                 std::vector<std::uint32_t>(kResamples, 0));
  for (std::size_t resample = 0; resample < kResamples; ++resample) {
    for (std::size_t draw = 0; draw < hits.size(); ++draw) {
      // Scaled by hand: std::uniform_int_distribution differs between standard libraries.
      const auto row = static_cast<std::size_t>(
          ((random() >> 32) * static_cast<std::uint64_t>(hits.size())) >> 32);
      for (std::size_t column = 0; column < columns; ++column)
        counts[column][resample] += hits[row][column] ? 1 : 0;
    }
  }
  const auto rows = static_cast<double>(hits.size());
  for (std::size_t column = 0; column < columns; ++column) {
    std::sort(counts[column].begin(), counts[column].end());
    // The 50th from either end: 2.5 % of the resamples lie outside on each side.
    constexpr std::size_t kTail = kResamples / 40;
    intervals[column] = {counts[column][kTail] / rows,
                         counts[column][kResamples - 1 - kTail] / rows};
  }
  return intervals;
}

}  // namespace kb::score
