"""RMSNorm: (batch, features, ...) divided by the root mean square over the features.

The features of one pixel lie far apart, neighbouring pixels side by side: a lane takes four pixels, and the eight
warps of a block share the features of 128 pixels. Up to 64 features stay in registers between the sum and the
division, so that x is read once. Bound by memory: 15.0 GB moved at the public size, 3.5 ms on an H200. float32;
PyTorch computes other types.
"""
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "torch::Tensor rms_norm_features(torch::Tensor x, double eps);"
CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kWarps = 8;
constexpr int kHeld = 8;  // features that a thread keeps

template <int kWidth>
struct alignas(kWidth * sizeof(float)) Pack {
  float at[kWidth];
};

// Warp w takes the features w, w + kWarps, ...; those past the held ones are read twice.
template <int kWidth>
__global__ void __launch_bounds__(32 * kWarps)
    rms_norm_kernel(const float* __restrict__ x, float* __restrict__ y, int features,
                    int64_t pixels, int64_t blocks_of_sample, float eps) {
  const int lane = threadIdx.x, warp = threadIdx.y;
  const int64_t sample = blockIdx.x / blocks_of_sample;
  const int64_t pixel = (blockIdx.x % blocks_of_sample * 32 + lane) * kWidth;
  const int64_t offset = sample * features * pixels + pixel;
  const bool inside = pixel < pixels;
  const auto load = [&](int feature) {
    return *reinterpret_cast<const Pack<kWidth>*>(x + offset + feature * pixels);
  };

  Pack<kWidth> held[kHeld] = {}, sum = {};
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    if (inside && warp + i * kWarps < features) held[i] = load(warp + i * kWarps);
  }
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    for (int j = 0; j < kWidth; ++j) sum.at[j] += held[i].at[j] * held[i].at[j];
  }
  for (int feature = warp + kHeld * kWarps; inside && feature < features; feature += kWarps) {
    const Pack<kWidth> pack = load(feature);
    for (int j = 0; j < kWidth; ++j) sum.at[j] += pack.at[j] * pack.at[j];
  }

  __shared__ Pack<kWidth> of_warp[kWarps][32];
  of_warp[warp][lane] = sum;
  __syncthreads();
  Pack<kWidth> scale = {};
  for (int w = 0; w < kWarps; ++w) {
    const Pack<kWidth> other = of_warp[w][lane];
    for (int j = 0; j < kWidth; ++j) scale.at[j] += other.at[j];
  }
  for (float& value : scale.at) value = 1.0f / sqrtf(value / float(features) + eps);

  const auto write = [&](int feature, Pack<kWidth> pack) {
    for (int j = 0; j < kWidth; ++j) pack.at[j] *= scale.at[j];
    *reinterpret_cast<Pack<kWidth>*>(y + offset + feature * pixels) = pack;
  };
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    if (inside && warp + i * kWarps < features) write(warp + i * kWarps, held[i]);
  }
  for (int feature = warp + kHeld * kWarps; inside && feature < features; feature += kWarps) {
    write(feature, load(feature));
  }
}

torch::Tensor rms_norm_features(torch::Tensor x, double eps) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous(), "x must be a contiguous CUDA tensor");
  TORCH_CHECK(x.scalar_type() == torch::kFloat32 && x.dim() >= 2, "x must be float32, 2 dimensions or more");
  auto y = torch::empty_like(x);
  if (x.numel() == 0) return y;
  const int64_t batch = x.size(0), features = x.size(1), pixels = x.numel() / (batch * features);
  const bool wide = pixels % 4 == 0 && reinterpret_cast<uintptr_t>(x.data_ptr()) % 16 == 0;
  const int64_t of_block = 32 * (wide ? 4 : 1), blocks_of_sample = (pixels + of_block - 1) / of_block;
  const auto kernel = wide ? rms_norm_kernel<4> : rms_norm_kernel<1>;
  kernel<<<unsigned(batch * blocks_of_sample), dim3(32, kWarps), 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), int(features), pixels, blocks_of_sample, float(eps));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""
extension = load_inline(name="example_rms_norm", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE,
                        functions=["rms_norm_features"], extra_cuda_cflags=["-O3"])


class ModelNew(nn.Module):
    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.num_features = num_features
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.is_cuda and x.dtype == torch.float32 and x.is_contiguous():
            return extension.rms_norm_features(x, self.eps)
        return x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + self.eps)
