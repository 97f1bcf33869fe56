"""Max pooling, 4 x 4 windows, stride 1, padding 1.

The maximum is separable. A thread walks down one output column: it takes the maximum of four neighbours in each input
row, and the maximum of the last four of these is an output. The fourfold loads are served by the first-level cache.
Padding: an index outside is moved to the border, which is in the window anyway. Bound by memory: 4.3 GB moved at the
public size, 1.0 ms on an H200. float32; PyTorch computes other types and windows. Needs sm_80 or later.
"""
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "torch::Tensor max_pool_4x4(torch::Tensor x);"
CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kKernel = 4, kPadding = 1;
constexpr int kThreads = 256;
constexpr int kRows = 16;  // outputs of a thread

// NaN if one of them is, as in PyTorch; fmaxf gives the other.
__device__ float larger(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

__global__ void __launch_bounds__(kThreads)
    max_pool_kernel(const float* __restrict__ x, float* __restrict__ y, int height, int width,
                    int out_height, int out_width, int strips, int column_blocks) {
  const int64_t plane = blockIdx.x / column_blocks / strips;
  const int first_row = int(blockIdx.x / column_blocks % strips) * kRows;
  const int column = int(blockIdx.x % column_blocks) * kThreads + int(threadIdx.x);
  if (column >= out_width) return;
  x += plane * height * width;
  y += plane * out_height * out_width + column;

  int columns[kKernel];
#pragma unroll
  for (int j = 0; j < kKernel; ++j) columns[j] = min(max(column - kPadding + j, 0), width - 1);

  float of_row[kRows + kKernel - 1];
#pragma unroll
  for (int i = 0; i < kRows + kKernel - 1; ++i) {
    const int row = min(max(first_row - kPadding + i, 0), height - 1);
    const float* from = x + int64_t(row) * width;
    of_row[i] = from[columns[0]];
#pragma unroll
    for (int j = 1; j < kKernel; ++j) of_row[i] = larger(of_row[i], from[columns[j]]);
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    float maximum = of_row[i];
#pragma unroll
    for (int j = 1; j < kKernel; ++j) maximum = larger(maximum, of_row[i + j]);
    if (first_row + i < out_height) y[int64_t(first_row + i) * out_width] = maximum;
  }
}

torch::Tensor max_pool_4x4(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous(), "x must be a contiguous CUDA tensor");
  TORCH_CHECK(x.scalar_type() == torch::kFloat32 && x.dim() == 4, "x must be float32, of 4 dimensions");
  const int64_t height = x.size(2), width = x.size(3), lost = kKernel - 1 - 2 * kPadding;
  TORCH_CHECK(height > lost && width > lost, "x is too small for the window");
  const int64_t out_height = height - lost, out_width = width - lost;
  auto y = torch::empty({x.size(0), x.size(1), out_height, out_width}, x.options());
  if (y.numel() == 0) return y;
  const int64_t planes = x.size(0) * x.size(1), strips = (out_height + kRows - 1) / kRows;
  const int64_t column_blocks = (out_width + kThreads - 1) / kThreads;
  max_pool_kernel<<<unsigned(planes * strips * column_blocks), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), int(height), int(width), int(out_height), int(out_width),
      int(strips), int(column_blocks));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""
extension = load_inline(name="example_max_pool", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE,
                        functions=["max_pool_4x4"], extra_cuda_cflags=["-O3"])


class ModelNew(nn.Module):
    def __init__(self, kernel_size: int, stride: int, padding: int, dilation: int):
        super().__init__()
        self.maxpool = nn.MaxPool2d(kernel_size, stride=stride, padding=padding, dilation=dilation)
        self.window_fits = (kernel_size, stride, padding, dilation) == (4, 1, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        fits = self.window_fits and x.dim() == 4 and x.size(2) >= 2 and x.size(3) >= 2
        if fits and x.is_cuda and x.dtype == torch.float32 and x.is_contiguous():
            return extension.max_pool_4x4(x)
        return self.maxpool(x)
