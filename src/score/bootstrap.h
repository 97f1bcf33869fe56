// Percentile bootstrap of fractions over problems.
#pragma once

#include <cstddef>
#include <vector>

#include "score/score.h"

namespace kb::score {

/// For each column of `hits` (rows: problems; all rows of one length) the 95 % interval of the
/// fraction of rows that are true, from 2000 resamples of the rows. The same input gives the same
/// answer on every machine. Empty rows: {0, 0} for each of `columns`. Where all rows agree the
/// interval has no width: a bootstrap cannot see what it never drew.
std::vector<Interval> bootstrap_fractions(const std::vector<std::vector<bool>>& hits,
                                          std::size_t columns);

}  // namespace kb::score
