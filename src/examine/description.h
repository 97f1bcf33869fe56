// What a problem takes and makes at a size, and how many operations it does: told without computing
// it, where it can be (python/kernelbench_worker/describe.py).
#pragma once

#include <expected>
#include <string>

#include "examine/station.h"
#include "worker/spec.h"

namespace kb::examine {

struct Description {
  worker::ProblemSpec spec;
  std::string size;              ///< "public", or a name of SIZES
  double matrix_operations = 0;  ///< of matrix products and convolutions; a multiply-add is two
  double other_operations = 0;  ///< about one for each element that goes in or comes out of another
                                ///< operation
};

/// Error: one sentence (the file is at fault, it does not fit, or no worker can be started).
std::expected<Description, std::string> describe(const Environment& environment,
                                                 const problem::Problem& problem,
                                                 const Terms& terms);

/// Reads a worker's reply. Error: one sentence.
std::expected<Description, std::string> parse_description(const nlohmann::json& reply);

}  // namespace kb::examine
