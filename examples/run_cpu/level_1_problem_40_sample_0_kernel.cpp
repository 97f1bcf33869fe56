// LayerNorm over all dimensions but the first, with weight and bias.
//
// Mean and variance come from one read of x: each block that fits the first-level cache gives its
// own mean and sum of squared deviations (two exact passes), and blocks are merged by Chan's
// formula. That is as stable as two passes over memory: E[x^2] - E[x]^2 would cancel.
// Assumes that the parameters are `ln.weight` and `ln.bias`, as long as one sample.
#include <kernelbench/kernel.h>

#include <algorithm>
#include <cmath>

namespace {

constexpr double kEps = 1e-5;  // PyTorch's default
constexpr int64_t kBlock = 1024;

struct Moments {
  double count = 0, mean = 0, squares = 0;  // squares: sum of (x - mean)^2

  void merge(const Moments& other) {
    const double total = count + other.count;
    const double delta = other.mean - mean;
    squares += other.squares + delta * delta * count * other.count / total;
    mean += delta * other.count / total;
    count = total;
  }
};

Moments moments_of(const float* x, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  const float mean = sum / float(n);
  float squares = 0, deviation = 0;
#pragma omp simd reduction(+ : squares, deviation)
  for (int64_t i = 0; i < n; ++i) {
    const float d = x[i] - mean;
    squares += d * d;
    deviation += d;  // not quite 0: `mean` is rounded, and corrected by this
  }
  const double shift = double(deviation) / n;
  return {double(n), mean + shift, squares - shift * deviation};
}

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const float* x = kb_input_f32(call, 0);
  const float* weight = kb_param_f32(call, "ln.weight");
  const float* bias = kb_param_f32(call, "ln.bias");
  float* y = kb_output_f32(call, 0);
  if (weight == nullptr || bias == nullptr) return 1;
  const int64_t batch = call->inputs[0].shape[0];
  const int64_t size = kb_numel(&call->inputs[0]) / batch;

#pragma omp parallel for schedule(static)
  for (int64_t n = 0; n < batch; ++n) {
    const float* in = x + n * size;
    float* out = y + n * size;
    Moments moments;
    for (int64_t begin = 0; begin < size; begin += kBlock) {
      moments.merge(moments_of(in + begin, std::min(kBlock, size - begin)));
    }
    const float mean = float(moments.mean);
    const float scale = float(1.0 / std::sqrt(moments.squares / size + kEps));
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) out[i] = (in[i] - mean) * scale * weight[i] + bias[i];
  }
  return 0;
}
