"""Softmax over the last dimension of a (rows, columns) matrix: one block for each row.

Online softmax: one read gives both the maximum and the sum of exp(x - maximum), since a sum is carried over to a
larger maximum by one factor; a second read writes the result. Bound by memory: 19.3 GB moved at the public size,
4.5 ms on an H200 (12.9 GB, 3.0 ms, if a row stayed on the chip). float32; PyTorch computes other types.
"""
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "torch::Tensor softmax_rows(torch::Tensor x);"
CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cfloat>

constexpr int kThreads = 1024;
constexpr int kPacks = 4;  // loads of a thread that are under way together

template <int kWidth>
struct alignas(kWidth * sizeof(float)) Pack {
  float at[kWidth];
};

struct Online {
  float maximum = -FLT_MAX;
  float sum = 0.0f;  // of exp(x - maximum)
};

__device__ Online merge(const Online& a, const Online& b) {
  const float maximum = fmaxf(a.maximum, b.maximum);
  return {maximum, a.sum * __expf(a.maximum - maximum) + b.sum * __expf(b.maximum - maximum)};
}

// `value` of all lanes together, in each lane.
__device__ Online merge_warp(Online value) {
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    value = merge(value, {__shfl_xor_sync(~0u, value.maximum, lanes),
                          __shfl_xor_sync(~0u, value.sum, lanes)});
  }
  return value;
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    softmax_kernel(const float* __restrict__ x, float* __restrict__ y, int64_t columns) {
  const auto* from = reinterpret_cast<const Pack<kWidth>*>(x + blockIdx.x * columns);
  auto* to = reinterpret_cast<Pack<kWidth>*>(y + blockIdx.x * columns);
  const int64_t packs = columns / kWidth;

  Online online;
  for (int64_t first = threadIdx.x; first < packs; first += kThreads * kPacks) {
    Pack<kWidth> pack[kPacks];
    float maximum = online.maximum, sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int64_t at = first + i * kThreads;
      for (float& value : pack[i].at) value = -FLT_MAX;
      if (at < packs) pack[i] = from[at];
    }
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      for (float value : pack[i].at) maximum = fmaxf(maximum, value);
    }
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      for (float value : pack[i].at) sum += __expf(value - maximum);
    }
    online = {maximum, online.sum * __expf(online.maximum - maximum) + sum};
  }

  __shared__ float maximum_of_warp[32], sum_of_warp[32];
  static_assert(kThreads == 32 * 32, "the warps' results are merged by one warp");
  online = merge_warp(online);
  maximum_of_warp[threadIdx.x / 32] = online.maximum;
  sum_of_warp[threadIdx.x / 32] = online.sum;
  __syncthreads();
  online = merge_warp({maximum_of_warp[threadIdx.x % 32], sum_of_warp[threadIdx.x % 32]});

  const float scale = 1.0f / online.sum;
#pragma unroll 4
  for (int64_t at = threadIdx.x; at < packs; at += kThreads) {
    Pack<kWidth> pack = from[at];
    for (float& value : pack.at) value = __expf(value - online.maximum) * scale;
    to[at] = pack;
  }
}

torch::Tensor softmax_rows(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous(), "x must be a contiguous CUDA tensor");
  TORCH_CHECK(x.scalar_type() == torch::kFloat32 && x.dim() == 2, "x must be a float32 matrix");
  auto y = torch::empty_like(x);
  if (x.numel() == 0) return y;
  const int64_t rows = x.size(0), columns = x.size(1);
  const bool wide = columns % 4 == 0 && reinterpret_cast<uintptr_t>(x.data_ptr()) % 16 == 0;
  const auto kernel = wide ? softmax_kernel<4> : softmax_kernel<1>;
  kernel<<<unsigned(rows), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), columns);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""
extension = load_inline(name="example_softmax", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE,
                        functions=["softmax_rows"], extra_cuda_cflags=["-O3"])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.is_cuda and x.dtype == torch.float32 and x.dim() == 2 and x.is_contiguous():
            return extension.softmax_rows(x)
        return torch.softmax(x, dim=1)
