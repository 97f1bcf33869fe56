# Linear, ReLU and the division in one kernel in bfloat16: a warp computes a tile of 32 x 64 on the tensor cores, with
# float32 sums, and what follows the product never leaves the registers.
import os

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = ("torch::Tensor linear_relu_divide(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, "
       "double divisor);")
CUDA = r"""
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <torch/extension.h>

#include "kittens.cuh"

using namespace kittens;

constexpr int kRows = 32, kColumns = 64, kInner = 32;
using Total = rt_fl<kRows, kColumns>;
using Vector = gl<bf16, 1, 1, 1, -1>;
using Matrix = gl<bf16, 1, 1, -1, -1>;

Matrix matrix(torch::Tensor& of) {
  return Matrix{reinterpret_cast<bf16*>(of.data_ptr<at::BFloat16>()), nullptr, nullptr, size_t(of.size(0)),
                size_t(of.size(1))};
}

__global__ void linear_relu_divide_kernel(const __grid_constant__ Matrix x, const __grid_constant__ Matrix weight,
                                          const __grid_constant__ Vector bias,
                                          const __grid_constant__ Matrix out, int steps, float factor) {
  const int row = blockIdx.y, column = blockIdx.x;  // in tiles
  Total total;
  rt_bf<kRows, kInner> left;
  rt_bf<kColumns, kInner> right;
  warp::zero(total);
  for (int step = 0; step < steps; ++step) {
    warp::load(left, x, {0, 0, row, step});
    warp::load(right, weight, {0, 0, column, step});
    warp::mma_ABt(total, left, right, total);
  }
  typename Total::row_vec shift;  // one for each column
  warp::load(shift, bias, {0, 0, 0, column});
  warp::add_col(total, total, shift);
  warp::relu(total, total);
  warp::mul(total, total, factor);
  warp::store(out, total, {0, 0, row, column});
}

torch::Tensor linear_relu_divide(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double divisor) {
  auto out = torch::empty({x.size(0), weight.size(0)}, x.options());
  const Vector shift{reinterpret_cast<bf16*>(bias.data_ptr<at::BFloat16>()), nullptr, nullptr, nullptr,
                     size_t(bias.size(0))};
  const dim3 grid(unsigned(weight.size(0) / kColumns), unsigned(x.size(0) / kRows));
  linear_relu_divide_kernel<<<grid, kittens::WARP_THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
      matrix(x), matrix(weight), shift, matrix(out), int(x.size(1) / kInner), float(1 / divisor));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

ROOT = os.environ["THUNDERKITTENS_ROOT"]
extension = load_inline(
    name="linear_relu_divide_tk", cpp_sources=CPP, cuda_sources=CUDA, functions=["linear_relu_divide"],
    extra_include_paths=[f"{ROOT}/include"],
    extra_cuda_cflags=["-O3", "-std=c++20", "-DKITTENS_HOPPER", "-gencode=arch=compute_90a,code=sm_90a",
                       "--expt-extended-lambda", "--expt-relaxed-constexpr"])


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int, divisor: float):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.divisor = divisor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # Tiles do not stop at the end of a tensor: other shapes take PyTorch's way.
        if x.shape[0] % 32 or x.shape[1] % 32 or self.linear.out_features % 64:
            return torch.relu(self.linear(x)) / self.divisor
        return extension.linear_relu_divide(x.contiguous(), self.linear.weight, self.linear.bias, self.divisor)
