# ReLU: one pass, as many bytes as the operation has to move.
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = "torch::Tensor relu_of(torch::Tensor x);"
CODE = r"""
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <torch/extension.h>

template <typename T>
__global__ void relu(const T* __restrict__ x, T* __restrict__ out, long long n) {
  const long long step = (long long)(gridDim.x) * blockDim.x;
  for (long long i = (long long)(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    const float value = float(x[i]);
    out[i] = value < 0.0f ? T(0.0f) : x[i];  // NaN stays NaN
  }
}

torch::Tensor relu_of(torch::Tensor x) {
  x = x.contiguous();
  auto out = torch::empty_like(x);
  const int64_t n = x.numel();
  if (n == 0) return out;
  const int blocks = int(std::min<int64_t>((n + 255) / 256, 65535));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "relu", [&] {
    relu<scalar_t><<<blocks, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), n);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""
extension = load_inline(name="relu_cuda", cpp_sources=CPP, cuda_sources=CODE, functions=["relu_of"],
                        extra_cuda_cflags=["-O3"])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.relu_of(x)
