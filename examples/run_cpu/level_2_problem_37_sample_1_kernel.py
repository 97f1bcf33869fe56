# Linear layer by PyTorch; Swish, bias and GroupNorm fused in a C++ extension.
#
# The product stays with the library, which is hard to beat. The rest takes one pass: each group is
# activated, normalised and written back in place while it is in the first-level cache.
# The extension is built when the module is imported, as inline extensions usually are.
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/Parallel.h>
#include <torch/extension.h>

#include <bit>
#include <cmath>

namespace {

// exp(x) for x <= 88, relative error about 1e-7, vectorised by the compiler (Cephes' expf).
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

void finish_group(float* x, int64_t size, const float* bias, const float* weight,
                  const float* shift, float eps) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) {
    x[i] = x[i] / (1.0f + exp_of(x[i] > -87.0f ? -x[i] : 87.0f)) + bias[i];
    sum += x[i];
  }
  const float mean = sum / size;
  float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < size; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const float scale = 1.0f / std::sqrt(squares / size + eps);
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) x[i] = (x[i] - mean) * scale * weight[i] + shift[i];
}

}  // namespace

// In place on x, (rows, features), float32 and contiguous.
void swish_bias_group_norm(torch::Tensor x, torch::Tensor bias, torch::Tensor weight,
                           torch::Tensor shift, int64_t groups, double eps) {
  TORCH_CHECK(x.is_contiguous() && x.scalar_type() == torch::kFloat && x.dim() == 2);
  const int64_t rows = x.size(0), features = x.size(1), size = features / groups;
  float* data = x.data_ptr<float>();
  const float* b = bias.data_ptr<float>();
  const float* w = weight.data_ptr<float>();
  const float* s = shift.data_ptr<float>();
  at::parallel_for(0, rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t c = 0; c < features; c += size) {
        finish_group(data + row * features + c, size, b + c, w + c, s + c, float(eps));
      }
    }
  });
}
"""

extension = load_inline(
    name="swish_bias_group_norm",
    cpp_sources=SOURCE,
    functions=["swish_bias_group_norm"],
    extra_cflags=["-O3", "-march=native", "-fopenmp", "-std=c++20"],
)


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int, num_groups: int, bias_shape: tuple):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.linear(x, self.matmul.weight, self.matmul.bias)
        norm = self.group_norm
        extension.swish_bias_group_norm(
            x, self.bias, norm.weight, norm.bias, norm.num_groups, norm.eps
        )
        return x
