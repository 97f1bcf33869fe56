# One pass instead of three: 12 bytes an element, which is all that memory has to move.
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = "torch::Tensor scaled_residual(torch::Tensor x, torch::Tensor y, torch::Tensor scale);"

HIP = r"""
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <torch/extension.h>

__global__ void scaled_residual_kernel(const float* __restrict__ x, const float* __restrict__ y,
                                       const float* __restrict__ scale, float* __restrict__ out,
                                       int64_t n, int columns) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    const float value = x[i] * scale[i % columns] + y[i];
    out[i] = value < 0.0f ? 0.0f : value;  // NaN stays NaN
  }
}

torch::Tensor scaled_residual(torch::Tensor x, torch::Tensor y, torch::Tensor scale) {
  x = x.contiguous();
  y = y.contiguous();
  auto out = torch::empty_like(x);
  const int64_t n = x.numel();
  if (n == 0) return out;
  constexpr int kThreads = 256;  // four wavefronts
  const int64_t blocks = std::min<int64_t>((n + kThreads - 1) / kThreads, 65535);
  // PyTorch translates these names to HIP's when it builds the extension.
  scaled_residual_kernel<<<dim3(unsigned(blocks)), dim3(kThreads), 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), scale.data_ptr<float>(), out.data_ptr<float>(), n,
      int(x.size(1)));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(name="scaled_residual", cpp_sources=CPP, cuda_sources=HIP, functions=["scaled_residual"],
                        extra_cuda_cflags=["-O3"])


class ModelNew(nn.Module):
    def __init__(self, columns: int):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return extension.scaled_residual(x, y, self.scale)
