// RMSNorm over the feature dimension of (batch, features, ...): y = x / sqrt(mean(x^2) + eps).
//
// PyTorch runs five kernels over the whole tensor (square, mean, add, root, divide). Here a tile of
// kTile neighbouring positions is taken through all features twice: the first pass adds up the
// squares and brings the tile into the cache, the second reads it from there and scales it.
// Any number of dimensions after the features.
#include <kernelbench/kernel.h>

#include <algorithm>
#include <cmath>

namespace {

constexpr float kEps = 1e-5f;  // the constructor's default
constexpr int64_t kTile = 512;

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const float* x = kb_input_f32(call, 0);
  float* y = kb_output_f32(call, 0);
  const DLTensor& shape = call->inputs[0];
  const int64_t batch = shape.shape[0];
  const int64_t features = shape.shape[1];
  const int64_t positions = kb_numel(&shape) / (batch * features);

#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t begin = 0; begin < positions; begin += kTile) {
      const int64_t size = std::min(kTile, positions - begin);
      const int64_t offset = n * features * positions + begin;

      alignas(64) float scale[kTile] = {};
      for (int64_t f = 0; f < features; ++f) {
        const float* in = x + offset + f * positions;
#pragma omp simd
        for (int64_t i = 0; i < size; ++i) scale[i] += in[i] * in[i];
      }
#pragma omp simd
      for (int64_t i = 0; i < size; ++i) scale[i] = 1.0f / std::sqrt(scale[i] / features + kEps);

      for (int64_t f = 0; f < features; ++f) {
        const float* in = x + offset + f * positions;
        float* out = y + offset + f * positions;
#pragma omp simd
        for (int64_t i = 0; i < size; ++i) out[i] = in[i] * scale[i];
      }
    }
  }
  return 0;
}
