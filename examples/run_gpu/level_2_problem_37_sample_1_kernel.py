"""Linear layer, then Swish, a bias and group normalisation.

PyTorch multiplies the matrices. One kernel does all the rest in place: a warp takes one group of one row, up to 256
values, keeps it in registers for Swish, mean, variance and result, and writes it once; PyTorch needs a pass over the
matrix for each. Bound by the product: 275 GFLOP at the public size, 4.6 ms at an H200's 60 TFLOP/s of float32; the
kernel moves 1.1 GB, 0.3 ms. float32; PyTorch computes other types and larger groups.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = """
torch::Tensor swish_bias_group_norm_(torch::Tensor x, torch::Tensor bias, torch::Tensor weight, torch::Tensor shift,
                                     int64_t groups, double eps);
"""
CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kWarps = 8;  // of a block; each takes a group
constexpr int kHeld = 8;   // values of a lane

__device__ float sum_warp(float value) {
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(~0u, value, lanes);
  return value;
}

// x is (rows, columns), and so (rows * groups, size).
__global__ void __launch_bounds__(32 * kWarps)
    swish_norm_kernel(float* __restrict__ x, const float* __restrict__ bias, const float* __restrict__ weight,
                      const float* __restrict__ shift, int64_t all_groups, int groups, int size, float eps) {
  const int64_t group = int64_t(blockIdx.x) * kWarps + threadIdx.y;
  if (group >= all_groups) return;
  const int lane = threadIdx.x, column = int(group % groups) * size;
  x += group * size;

  float held[kHeld], sum = 0.0f, squares = 0.0f;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const int at = i * 32 + lane;
    held[i] = at < size ? x[at] : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const int at = i * 32 + lane;
    if (at >= size) continue;
    held[i] = held[i] / (1.0f + __expf(-held[i])) + bias[column + at];
    sum += held[i];
  }
  const float mean = sum_warp(sum) / size;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    if (i * 32 + lane < size) squares += (held[i] - mean) * (held[i] - mean);
  }
  const float factor = 1.0f / sqrtf(sum_warp(squares) / size + eps);
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const int at = i * 32 + lane;
    if (at < size) x[at] = (held[i] - mean) * factor * weight[column + at] + shift[column + at];
  }
}

torch::Tensor swish_bias_group_norm_(torch::Tensor x, torch::Tensor bias, torch::Tensor weight, torch::Tensor shift,
                                     int64_t groups, double eps) {
  for (const auto& tensor : {x, bias, weight, shift}) {
    TORCH_CHECK(tensor.is_cuda() && tensor.is_contiguous(), "the tensors must be contiguous, on a GPU");
    TORCH_CHECK(tensor.scalar_type() == torch::kFloat32, "the tensors must be float32");
  }
  TORCH_CHECK(x.dim() == 2 && groups > 0 && x.size(1) % groups == 0, "x must be a matrix of whole groups");
  const int64_t columns = x.size(1), size = columns / groups, all_groups = x.size(0) * groups;
  TORCH_CHECK(bias.numel() == columns && weight.numel() == columns && shift.numel() == columns);
  TORCH_CHECK(size <= 32 * kHeld, "a group is too large");
  if (x.numel() == 0) return x;
  const auto blocks = unsigned((all_groups + kWarps - 1) / kWarps);
  swish_norm_kernel<<<blocks, dim3(32, kWarps), 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), bias.data_ptr<float>(), weight.data_ptr<float>(), shift.data_ptr<float>(), all_groups,
      int(groups), int(size), float(eps));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return x;
}
"""
extension = load_inline(name="example_swish_norm", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE,
                        functions=["swish_bias_group_norm_"], extra_cuda_cflags=["-O3"])

LARGEST_GROUP = 256


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int, num_groups: int, bias_shape: tuple):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.matmul(x)  # a new tensor, which the kernel may overwrite
        norm = self.group_norm
        fits = x.dim() == 2 and self.bias.numel() == x.size(1) <= LARGEST_GROUP * norm.num_groups
        if fits and x.is_cuda and x.dtype == torch.float32 and x.is_contiguous():
            return extension.swish_bias_group_norm_(x, self.bias, norm.weight, norm.bias, norm.num_groups, norm.eps)
        return norm(F.silu(x) + self.bias)
