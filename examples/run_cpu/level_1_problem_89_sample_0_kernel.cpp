// Running sum along the last dimension of a (rows, columns) matrix.
//
// A plain loop waits for one addition per element. Here eight elements at a time are scanned inside
// a vector (three shifted additions), and only one addition per eight depends on those before it.
// Sums are held in double, as PyTorch does, so that long rows stay exact.
// Assumes dim = 1 of a 2-dimensional input.
#include <kernelbench/kernel.h>

namespace {

constexpr int kLanes = 8;

using Doubles = double __attribute__((vector_size(kLanes * sizeof(double))));
using Indices = int64_t __attribute__((vector_size(kLanes * sizeof(int64_t))));
using Floats = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

// Replaces each element by the sum of those up to it.
inline void prefix_sums(Doubles& v) {
  // Indices below kLanes choose from the first operand, the rest from the second.
  const Doubles zero = {};
  v += __builtin_shuffle(zero, v, Indices{0, 8, 9, 10, 11, 12, 13, 14});
  v += __builtin_shuffle(zero, v, Indices{0, 0, 8, 9, 10, 11, 12, 13});
  v += __builtin_shuffle(zero, v, Indices{0, 0, 0, 0, 8, 9, 10, 11});
}

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const float* x = kb_input_f32(call, 0);
  float* y = kb_output_f32(call, 0);
  const int64_t rows = call->inputs[0].shape[0];
  const int64_t columns = call->inputs[0].shape[1];

#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x + row * columns;
    float* out = y + row * columns;
    double carry = 0.0;
    int64_t i = 0;
    for (; i + kLanes <= columns; i += kLanes) {
      const Floats loaded = *reinterpret_cast<const Floats*>(in + i);
      Doubles sums = __builtin_convertvector(loaded, Doubles);
      prefix_sums(sums);
      *reinterpret_cast<Floats*>(out + i) = __builtin_convertvector(sums + carry, Floats);
      carry += sums[kLanes - 1];
    }
    for (; i < columns; ++i) {
      carry += in[i];
      out[i] = float(carry);
    }
  }
  return 0;
}
