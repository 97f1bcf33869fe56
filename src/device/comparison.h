// What a comparison of a candidate's tensor with a reference's asks and finds, on every device.
//
// An element violates where |c - r| > atol + rtol * |r| (torch.allclose's formula, with equal_nan:
// a NaN matches a NaN, an infinity the same infinity, and nothing else). The norm-wise test is
// ||c - r||_2 <= norm_rtol * ||r||_2. Integers must be equal, and bools too as bytes (PyTorch
// writes 0 and 1; an output slot's 0xFF is no true). Arithmetic is float64, whatever the types.
#pragma once

#include <cstdint>

namespace kb {

struct Tolerance {
  double atol = 1e-4;
  double rtol = 1e-4;
  double norm_rtol = 1e-4;  ///< infinity turns the norm-wise test off
};

struct Comparison {
  std::int64_t elements = 0;
  std::int64_t violations = 0;        ///< elements outside the element-wise tolerance
  std::int64_t first_violation = -1;  ///< row-major index of the first one, -1 without
  double candidate_at_first = 0, reference_at_first = 0;
  std::int64_t nonfinite_mismatches =
      0;  ///< of the violations: NaN or Inf on one side only, or different infinities
  double max_abs_error = 0;       ///< over elements finite on both sides
  double max_rel_error = 0;       ///< |c - r| / |r| over those with r != 0
  double error_norm = 0;          ///< ||c - r||_2 over those
  double reference_norm = 0;      ///< ||r||_2 over those
  bool readable = true;           ///< false: a block could not be read; the rest is meaningless
  bool within_tolerance = false;  ///< readable, no violations, and the norm-wise test holds

  /// ||c - r|| / ||r||; 0 when both are 0, infinity when only the reference is 0.
  double relative_norm_error() const;
};

}  // namespace kb
