# ReLU in bfloat16: a warp takes a tile of 16 x 64 elements in registers.
import os

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = "torch::Tensor relu_of(torch::Tensor x);"
CUDA = r"""
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <torch/extension.h>

#include "kittens.cuh"

using namespace kittens;

constexpr int kRows = 16, kColumns = 64;
using Tile = rt_bf<kRows, kColumns>;
using Matrix = gl<bf16, 1, 1, -1, -1>;

Matrix matrix(torch::Tensor& of) {
  return Matrix{reinterpret_cast<bf16*>(of.data_ptr<at::BFloat16>()), nullptr, nullptr, size_t(of.size(0)),
                size_t(of.size(1))};
}

__global__ void relu_kernel(const __grid_constant__ Matrix x, const __grid_constant__ Matrix out) {
  const int row = blockIdx.y, column = blockIdx.x;  // in tiles
  Tile value;
  warp::load(value, x, {0, 0, row, column});
  warp::relu(value, value);
  warp::store(out, value, {0, 0, row, column});
}

torch::Tensor relu_of(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const dim3 grid(unsigned(x.size(1) / kColumns), unsigned(x.size(0) / kRows));
  relu_kernel<<<grid, kittens::WARP_THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(matrix(x), matrix(out));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

ROOT = os.environ["THUNDERKITTENS_ROOT"]
extension = load_inline(
    name="relu_of_tk", cpp_sources=CPP, cuda_sources=CUDA, functions=["relu_of"],
    extra_include_paths=[f"{ROOT}/include"],
    extra_cuda_cflags=["-O3", "-std=c++20", "-DKITTENS_HOPPER", "-gencode=arch=compute_90a,code=sm_90a",
                       "--expt-extended-lambda", "--expt-relaxed-constexpr"])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # Tiles do not stop at the end of a tensor: other shapes take PyTorch's way.
        if x.dim() != 2 or x.shape[0] % 16 or x.shape[1] % 64 or x.shape[0] // 16 > 65535:
            return torch.relu(x)
        return extension.relu_of(x.contiguous())
