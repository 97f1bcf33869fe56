// Matrix-vector product: C (M, 1) = A (M, K) * B (K, 1) with K much larger than M.
//
// A is read once and never again, so memory sets the pace. kRows rows go together: each piece of B
// is loaded once for all of them, and several streams keep more cache misses in flight.
// Pieces of kBlock are summed in float and added up in double, which keeps a long sum exact enough.
#include <kernelbench/kernel.h>

#include <algorithm>

namespace {

constexpr int64_t kRows = 4;
constexpr int64_t kBlock = 1024;

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const float* a = kb_input_f32(call, 0);
  const float* b = kb_input_f32(call, 1);
  float* c = kb_output_f32(call, 0);
  const int64_t m = call->inputs[0].shape[0];
  const int64_t k = call->inputs[0].shape[1];

#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < m; row += kRows) {
    // Rows past the end repeat the last one; their sums are not stored.
    const float* a0 = a + row * k;
    const float* a1 = a + std::min(row + 1, m - 1) * k;
    const float* a2 = a + std::min(row + 2, m - 1) * k;
    const float* a3 = a + std::min(row + 3, m - 1) * k;
    double total[kRows] = {};
    for (int64_t begin = 0; begin < k; begin += kBlock) {
      const int64_t end = std::min(k, begin + kBlock);
      float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
      for (int64_t i = begin; i < end; ++i) {
        s0 += a0[i] * b[i];
        s1 += a1[i] * b[i];
        s2 += a2[i] * b[i];
        s3 += a3[i] * b[i];
      }
      total[0] += s0;
      total[1] += s1;
      total[2] += s2;
      total[3] += s3;
    }
    for (int64_t r = 0; r < std::min(kRows, m - row); ++r) c[row + r] = float(total[r]);
  }
  return 0;
}
