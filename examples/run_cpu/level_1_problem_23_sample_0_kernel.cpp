// Softmax over the last dimension of a (rows, columns) matrix.
//
// One pass over x: each block of a row is written as exp(x - m) with m the maximum of that block,
// and the row's maximum and sum are kept up to date (online softmax). A second pass over y, which
// is still in the cache, scales each block by exp(m - maximum) / sum. exp runs once per element.
// Assumes a 2-dimensional input; rows of any length.
#include <kernelbench/kernel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace {

constexpr int64_t kBlock = 2048;

// exp(x) for x <= 88, relative error about 1e-7; the compiler vectorises it. x = n ln 2 + r, and
// exp(r) is the polynomial of Cephes' expf.
inline float exp_of(float x) {
  const float shifted = x * 1.44269504f + 12582912.0f;  // the low mantissa bits now hold n
  const float n = shifted - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const float power = std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) << 23) + 0x3f800000u);
  return x < -87.0f ? 0.0f : p * power;
}

// The maximum is a conditional expression because g++ does not vectorise a reduction by std::max.
float maximum_of(const float* x, int64_t n) {
  float maximum = std::numeric_limits<float>::lowest();
#pragma omp simd reduction(max : maximum)
  for (int64_t i = 0; i < n; ++i) maximum = x[i] > maximum ? x[i] : maximum;
  return maximum;
}

void softmax_row(const float* x, float* y, int64_t n, std::vector<float>& block_maximum) {
  float maximum = std::numeric_limits<float>::lowest();
  double sum = 0.0;  // of exp(x - maximum) so far
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t size = std::min(kBlock, n - begin);
    const float block_max = maximum_of(x + begin, size);
    block_maximum[begin / kBlock] = block_max;

    float block_sum = 0.0f;
#pragma omp simd reduction(+ : block_sum)
    for (int64_t i = begin; i < begin + size; ++i) {
      y[i] = exp_of(x[i] - block_max);
      block_sum += y[i];
    }

    const float new_maximum = std::max(maximum, block_max);
    sum = sum * std::exp(double(maximum) - new_maximum) +
          block_sum * std::exp(double(block_max) - new_maximum);
    maximum = new_maximum;
  }

  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    const float scale = float(std::exp(double(block_maximum[begin / kBlock]) - maximum) / sum);
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) y[i] *= scale;
  }
}

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const float* x = kb_input_f32(call, 0);
  float* y = kb_output_f32(call, 0);
  const int64_t rows = call->inputs[0].shape[0];
  const int64_t columns = call->inputs[0].shape[1];

#pragma omp parallel
  {
    std::vector<float> block_maximum((columns + kBlock - 1) / kBlock);
#pragma omp for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
      softmax_row(x + row * columns, y + row * columns, columns, block_maximum);
    }
  }
  return 0;
}
