# Sum over the middle dimension: a thread adds up one column, and neighbours read neighbouring addresses.
# PyTorch translates the CUDA names to HIP's when it builds the extension.
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = "torch::Tensor sum_of_rows_of(torch::Tensor x);"
CODE = r"""
#include <hip/hip_runtime.h>

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <torch/extension.h>

template <typename T>
__global__ void sum_of_rows(const T* __restrict__ x, T* __restrict__ out, int rows, int columns) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  const T* at = x + (long long)(blockIdx.y) * rows * columns + column;
  float total[4] = {};  // four loads under way at a time
  int row = 0;
  for (; row + 4 <= rows; row += 4, at += 4ll * columns)
    for (int i = 0; i < 4; ++i) total[i] += float(at[(long long)(i) * columns]);
  for (; row < rows; ++row, at += columns) total[0] += float(*at);
  out[(long long)(blockIdx.y) * columns + column] = T((total[0] + total[1]) + (total[2] + total[3]));
}

torch::Tensor sum_of_rows_of(torch::Tensor x) {
  x = x.contiguous();
  const int batches = int(x.size(0)), rows = int(x.size(1)), columns = int(x.size(2));
  auto out = torch::empty({batches, 1, columns}, x.options());
  const dim3 grid(unsigned((columns + 127) / 128), unsigned(batches));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "sum_of_rows", [&] {
    sum_of_rows<scalar_t><<<grid, 128, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), rows, columns);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""
extension = load_inline(name="sum_of_rows_hip", cpp_sources=CPP, cuda_sources=CODE, functions=["sum_of_rows_of"],
                        extra_cuda_cflags=["-O3"])


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dim() != 3 or self.dim != 1:
            return torch.sum(x, dim=self.dim, keepdim=True)
        return extension.sum_of_rows_of(x)
