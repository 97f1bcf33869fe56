# One pass instead of three: 12 bytes an element, which is all that memory has to move. A warp takes a tile of
# 16 x 64 elements in registers.
import os

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = "torch::Tensor scaled_residual(torch::Tensor x, torch::Tensor y, torch::Tensor scale);"

CUDA = r"""
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <torch/extension.h>

#include "kittens.cuh"

using namespace kittens;

constexpr int kRows = 16, kColumns = 64;
using Tile = rt_fl<kRows, kColumns>;
using Matrix = gl<float, 1, 1, -1, -1>;
using Vector = gl<float, 1, 1, 1, -1>;

__global__ void scaled_residual_kernel(const __grid_constant__ Matrix x, const __grid_constant__ Matrix y,
                                       const __grid_constant__ Vector scale,
                                       const __grid_constant__ Matrix out) {
  const int row = blockIdx.y, column = blockIdx.x;  // in tiles
  Tile value, other;
  typename Tile::row_vec factors;  // one for each column
  warp::load(value, x, {0, 0, row, column});
  warp::load(other, y, {0, 0, row, column});
  warp::load(factors, scale, {0, 0, 0, column});
  warp::mul_col(value, value, factors);
  warp::add(value, value, other);
  warp::relu(value, value);
  warp::store(out, value, {0, 0, row, column});
}

torch::Tensor scaled_residual(torch::Tensor x, torch::Tensor y, torch::Tensor scale) {
  auto out = torch::empty_like(x);
  const auto rows = size_t(x.size(0)), columns = size_t(x.size(1));
  const auto matrix = [&](torch::Tensor& of) {
    return Matrix{of.data_ptr<float>(), nullptr, nullptr, rows, columns};
  };
  const dim3 grid(unsigned(columns / kColumns), unsigned(rows / kRows));
  scaled_residual_kernel<<<grid, kittens::WARP_THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
      matrix(x), matrix(y), Vector{scale.data_ptr<float>(), nullptr, nullptr, nullptr, columns}, matrix(out));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

ROOT = os.environ["THUNDERKITTENS_ROOT"]
extension = load_inline(
    name="scaled_residual_tk", cpp_sources=CPP, cuda_sources=CUDA, functions=["scaled_residual"],
    extra_include_paths=[f"{ROOT}/include"],
    extra_cuda_cflags=["-O3", "-std=c++20", "-DKITTENS_HOPPER", "-gencode=arch=compute_90a,code=sm_90a",
                       "--expt-extended-lambda", "--expt-relaxed-constexpr"])


class ModelNew(nn.Module):
    def __init__(self, columns: int):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        # Tiles do not stop at the end of a tensor: other shapes take PyTorch's way.
        if x.shape[0] % 16 or x.shape[1] % 64:
            return torch.relu(x * self.scale + y)
        return extension.scaled_residual(x.contiguous(), y.contiguous(), self.scale)
