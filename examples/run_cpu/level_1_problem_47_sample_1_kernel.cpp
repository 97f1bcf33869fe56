// MISTAKE: wrong tail. Columns are summed eight at a time and the last dim2 % 8 are forgotten.
//
// dim2 is 511 (4095 at full size), so the last seven columns of each sum are never written. An
// evaluator that hands out zeroed or recycled output memory may miss it. Expected: wrong_value.
#include <kernelbench/kernel.h>

KB_EXPORT int kb_run(const kb_call* call) {
  const float* x = kb_input_f32(call, 0);
  float* y = kb_output_f32(call, 0);
  const int64_t batch = call->inputs[0].shape[0];
  const int64_t rows = call->inputs[0].shape[1];
  const int64_t columns = call->inputs[0].shape[2];
  constexpr int64_t kLanes = 8;

#pragma omp parallel for schedule(static)
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t j = 0; j + kLanes <= columns; j += kLanes) {
      float sum[kLanes] = {};
      for (int64_t i = 0; i < rows; ++i) {
        const float* in = x + (n * rows + i) * columns + j;
#pragma omp simd
        for (int64_t lane = 0; lane < kLanes; ++lane) sum[lane] += in[lane];
      }
      for (int64_t lane = 0; lane < kLanes; ++lane) y[n * columns + j + lane] = sum[lane];
    }
  }
  return 0;
}
