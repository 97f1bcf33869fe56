// Mean cross entropy of (batch, classes) logits and (batch) labels: mean of log sum exp(x) -
// x[label].
//
// PyTorch writes the whole log-softmax matrix and then picks one entry of each row. Here each row
// is read once, block by block, with its maximum and sum of exponentials kept up to date; nothing
// but one number is written. Labels are int64, as PyTorch's. A label of -100 (PyTorch's
// ignore_index) does not count.
#include <kernelbench/kernel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace {

constexpr int64_t kBlock = 1024;
constexpr int64_t kIgnored = -100;

// exp(x) for x <= 88, relative error about 1e-7. x = n ln 2 + r; exp(r) as in Cephes' expf.
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

double log_sum_exp(const float* x, int64_t n) {
  float maximum = std::numeric_limits<float>::lowest();
  double sum = 0.0;  // of exp(x - maximum) so far
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    float block_maximum = maximum;
    // Not std::max: g++ does not vectorise a reduction by it.
#pragma omp simd reduction(max : block_maximum)
    for (int64_t i = begin; i < end; ++i) {
      block_maximum = x[i] > block_maximum ? x[i] : block_maximum;
    }
    if (block_maximum > maximum) {
      sum *= std::exp(double(maximum) - block_maximum);
      maximum = block_maximum;
    }
    float block_sum = 0.0f;
#pragma omp simd reduction(+ : block_sum)
    for (int64_t i = begin; i < end; ++i) block_sum += exp_of(x[i] - maximum);
    sum += block_sum;
  }
  return maximum + std::log(sum);
}

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const float* logits = kb_input_f32(call, 0);
  const auto* labels = static_cast<const int64_t*>(kb_data(&call->inputs[1]));
  float* loss = kb_output_f32(call, 0);
  const int64_t batch = call->inputs[0].shape[0];
  const int64_t classes = call->inputs[0].shape[1];

  double total = 0.0;
  int64_t counted = 0;
#pragma omp parallel for schedule(static) reduction(+ : total, counted)
  for (int64_t n = 0; n < batch; ++n) {
    if (labels[n] == kIgnored) continue;
    const float* row = logits + n * classes;
    total += log_sum_exp(row, classes) - row[labels[n]];
    ++counted;
  }
  *loss = float(total / counted);
  return 0;
}
