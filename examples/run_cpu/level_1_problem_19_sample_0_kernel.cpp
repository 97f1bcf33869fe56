// ReLU: y = max(x, 0), element by element.
//
// Limited by memory alone. An ordinary store first reads the cache line that it overwrites; a
// streaming store does not, which takes the traffic from three transfers per element to two.
// Assumes nothing about the shape: the tensor is one flat run of floats.
#include <kernelbench/kernel.h>

#include <algorithm>

#ifdef __AVX__
#include <immintrin.h>
#endif

namespace {

// Written so that NaN stays NaN, as in PyTorch.
float relu(float x) {
  return x < 0.0f ? 0.0f : x;
}

void relu(const float* x, float* y, int64_t n) {
  int64_t i = 0;
#ifdef __AVX__
  constexpr int64_t kLanes = 8;
  while (i < n && reinterpret_cast<uintptr_t>(y + i) % sizeof(__m256) != 0) {
    y[i] = relu(x[i]);
    ++i;
  }
  const __m256 zero = _mm256_setzero_ps();
  for (; i + kLanes <= n; i += kLanes) {
    // The second operand is returned when one is NaN.
    _mm256_stream_ps(y + i, _mm256_max_ps(zero, _mm256_loadu_ps(x + i)));
  }
  _mm_sfence();
#endif
  for (; i < n; ++i) y[i] = relu(x[i]);
}

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const float* x = kb_input_f32(call, 0);
  float* y = kb_output_f32(call, 0);
  const int64_t n = kb_numel(&call->inputs[0]);

  constexpr int64_t kChunk = 64 * 1024;
#pragma omp parallel for schedule(static)
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    relu(x + begin, y + begin, std::min(kChunk, n - begin));
  }
  return 0;
}
