#include "score/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace kb::score {
namespace {

struct Mean {
  double sum = 0;
  std::size_t count = 0;
  void add(double value) {
    if (std::isnan(value)) return;
    sum += value;
    ++count;
  }
  double value() const { return sum / static_cast<double>(count); }
};

}  // namespace

std::vector<std::optional<Estimate>> bootstrap_means(const std::vector<std::vector<double>>& rows,
                                                     std::size_t columns) {
  std::vector<std::optional<Estimate>> estimates(columns);
  if (rows.empty()) return estimates;
  std::mt19937_64 random(kSeed);
  std::vector<std::vector<double>> replicates(columns);
  for (std::size_t resample = 0; resample < kResamples; ++resample) {
    std::vector<Mean> means(columns);
    for (std::size_t draw = 0; draw < rows.size(); ++draw) {
      // Scaled by hand: std::uniform_int_distribution differs between standard libraries.
      const auto row = static_cast<std::size_t>(
          ((random() >> 32) * static_cast<std::uint64_t>(rows.size())) >> 32);
      for (std::size_t column = 0; column < columns; ++column) means[column].add(rows[row][column]);
    }
    for (std::size_t column = 0; column < columns; ++column)
      if (means[column].count > 0) replicates[column].push_back(means[column].value());
  }
  for (std::size_t column = 0; column < columns; ++column) {
    Mean mean;
    for (const auto& row : rows) mean.add(row[column]);
    if (mean.count == 0) continue;
    auto& sorted = replicates[column];
    std::sort(sorted.begin(), sorted.end());
    // None at all is possible, though hardly: one value among many problems.
    if (sorted.empty()) sorted.push_back(mean.value());
    // 2.5 % of the resamples lie outside on each side.
    const std::size_t tail = sorted.size() / 40;
    estimates[column] = {mean.value(), {sorted[tail], sorted[sorted.size() - 1 - tail]}};
  }
  return estimates;
}

}  // namespace kb::score
