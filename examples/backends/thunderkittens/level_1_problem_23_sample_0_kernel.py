# Softmax over the last dimension in bfloat16: a warp takes 16 rows, and goes over them twice. The first time it keeps
# the maximum and the sum so far, the second time it writes. Sums are float32.
import os

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = "torch::Tensor softmax_of(torch::Tensor x);"
CUDA = r"""
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <torch/extension.h>

#include "kittens.cuh"

using namespace kittens;

constexpr int kRows = 16, kColumns = 64;
using Tile = rt_fl<kRows, kColumns>;
using Matrix = gl<bf16, 1, 1, -1, -1>;

Matrix matrix(torch::Tensor& of) {
  return Matrix{reinterpret_cast<bf16*>(of.data_ptr<at::BFloat16>()), nullptr, nullptr, size_t(of.size(0)),
                size_t(of.size(1))};
}

__global__ void softmax_kernel(const __grid_constant__ Matrix x, const __grid_constant__ Matrix out, int tiles) {
  const int row = blockIdx.x;  // in tiles
  Tile value;
  typename Tile::col_vec most, before, sum;  // one for each row
  warp::neg_infty(most);
  warp::zero(sum);
  for (int column = 0; column < tiles; ++column) {
    warp::load(value, x, {0, 0, row, column});
    warp::copy(before, most);
    warp::row_max(most, value, most);
    warp::sub(before, before, most);
    warp::exp(before, before);
    warp::mul(sum, sum, before);
    warp::sub_row(value, value, most);
    warp::exp(value, value);
    warp::row_sum(sum, value, sum);
  }
  for (int column = 0; column < tiles; ++column) {
    warp::load(value, x, {0, 0, row, column});
    warp::sub_row(value, value, most);
    warp::exp(value, value);
    warp::div_row(value, value, sum);
    warp::store(out, value, {0, 0, row, column});
  }
}

torch::Tensor softmax_of(torch::Tensor x) {
  auto out = torch::empty_like(x);
  softmax_kernel<<<unsigned(x.size(0) / kRows), kittens::WARP_THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
      matrix(x), matrix(out), int(x.size(1) / kColumns));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

ROOT = os.environ["THUNDERKITTENS_ROOT"]
extension = load_inline(
    name="softmax_of_tk", cpp_sources=CPP, cuda_sources=CUDA, functions=["softmax_of"],
    extra_include_paths=[f"{ROOT}/include"],
    extra_cuda_cflags=["-O3", "-std=c++20", "-DKITTENS_HOPPER", "-gencode=arch=compute_90a,code=sm_90a",
                       "--expt-extended-lambda", "--expt-relaxed-constexpr"])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # Tiles do not stop at the end of a tensor: other shapes take PyTorch's way.
        if x.dim() != 2 or x.shape[0] % 16 or x.shape[1] % 64:
            return torch.softmax(x, dim=-1)
        return extension.softmax_of(x.contiguous())
