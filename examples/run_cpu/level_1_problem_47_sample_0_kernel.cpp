// Sum over dimension 1 of (batch, dim1, dim2); the output is (batch, 1, dim2).
//
// Rows are read in memory order and added into a strip of kStrip column sums, which stays in the
// first-level cache: one streaming read of x. kGroup rows are summed on their own before they join
// the total, so that rounding errors grow with the square root of dim1 at worst.
// Any dim2; the last strip is simply narrower.
#include <kernelbench/kernel.h>

#include <algorithm>

namespace {

constexpr int64_t kStrip = 1024;
constexpr int64_t kGroup = 16;

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const float* x = kb_input_f32(call, 0);
  float* y = kb_output_f32(call, 0);
  const int64_t batch = call->inputs[0].shape[0];
  const int64_t rows = call->inputs[0].shape[1];
  const int64_t columns = call->inputs[0].shape[2];

#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t begin = 0; begin < columns; begin += kStrip) {
      const int64_t width = std::min(kStrip, columns - begin);
      alignas(64) float total[kStrip] = {};
      for (int64_t first = 0; first < rows; first += kGroup) {
        const int64_t group = std::min(kGroup, rows - first);
        const float* in = x + (n * rows + first) * columns + begin;
        if (group == kGroup) {
#pragma omp simd
          for (int64_t j = 0; j < width; ++j) {
            float sum = 0;
            for (int64_t i = 0; i < kGroup; ++i) sum += in[i * columns + j];
            total[j] += sum;
          }
        } else {
          for (int64_t i = 0; i < group; ++i) {
#pragma omp simd
            for (int64_t j = 0; j < width; ++j) total[j] += in[i * columns + j];
          }
        }
      }
      std::copy_n(total, width, y + n * columns + begin);
    }
  }
  return 0;
}
