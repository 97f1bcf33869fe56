"""ReLU: y = max(x, 0), element by element.

A thread has four loads of 16 bytes under way before it uses the first value. Bound by memory: 12.9 GB moved at
the public size, 3.0 ms on an H200, and PyTorch's own kernel is about there. float32, float16 and bfloat16.
"""
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "torch::Tensor relu_forward(torch::Tensor x);"
CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kThreads = 256;
constexpr int kPacks = 4;  // of each thread

template <typename T>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T at[kSize];
};

// Written so that NaN stays NaN, as in PyTorch.
template <typename T>
__device__ T relu_of(T x) {
  return float(x) < 0.0f ? T(0.0f) : x;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    relu_kernel(const T* __restrict__ x, T* __restrict__ y, int64_t n) {
  const int64_t packs = n / Pack<T>::kSize;
  const int64_t first = int64_t(blockIdx.x) * kThreads * kPacks + threadIdx.x;
  const auto* from = reinterpret_cast<const Pack<T>*>(x);
  auto* to = reinterpret_cast<Pack<T>*>(y);

  Pack<T> pack[kPacks];
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    if (first + i * kThreads < packs) pack[i] = from[first + i * kThreads];
  }
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    if (first + i * kThreads >= packs) continue;
#pragma unroll
    for (T& value : pack[i].at) value = relu_of(value);
    to[first + i * kThreads] = pack[i];
  }

  // What is left after the last whole pack: fewer than kSize elements.
  const int64_t rest = packs * Pack<T>::kSize + int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (rest < n) y[rest] = relu_of(x[rest]);
}

template <typename T>
void launch(const torch::Tensor& x, const torch::Tensor& y) {
  const int64_t n = x.numel();
  const int64_t blocks = n / (kThreads * kPacks * Pack<T>::kSize) + 1;
  relu_kernel<T><<<unsigned(blocks), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<T>(), y.data_ptr<T>(), n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

torch::Tensor relu_forward(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous(), "x must be a contiguous CUDA tensor");
  TORCH_CHECK(reinterpret_cast<uintptr_t>(x.data_ptr()) % 16 == 0, "x must be aligned to 16 bytes");
  auto y = torch::empty_like(x);
  switch (x.scalar_type()) {
    case torch::kFloat32: launch<float>(x, y); break;
    case torch::kFloat16: launch<at::Half>(x, y); break;
    case torch::kBFloat16: launch<at::BFloat16>(x, y); break;
    default: TORCH_CHECK(false, "no kernel for ", x.scalar_type());
  }
  return y;
}
"""
extension = load_inline(name="example_relu", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE,
                        functions=["relu_forward"], extra_cuda_cflags=["-O3"])

TYPES = (torch.float32, torch.float16, torch.bfloat16)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.is_cuda and x.dtype in TYPES and x.is_contiguous() and x.data_ptr() % 16 == 0:
            return extension.relu_forward(x)
        return torch.relu(x)
