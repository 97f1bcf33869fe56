#include "device/comparison.h"

#include <limits>

namespace kb {

double Comparison::relative_norm_error() const {
  if (error_norm == 0) return 0;
  if (reference_norm == 0) return std::numeric_limits<double>::infinity();
  return error_norm / reference_norm;
}

}  // namespace kb
