# no_implicit_headers, and a .cu without any of torch's umbrella headers.
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ops = load_inline(name="own_ext", no_implicit_headers=True, with_pytorch_error_handling=False, cpp_sources="""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/utils/pybind.h>
void launch(const float* x, float* y, int n);
at::Tensor cube(const at::Tensor& x) {
  auto y = at::empty_like(x);
  launch(x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), x.numel());
  return y;
}
""", cuda_sources="""
__global__ void cube_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * x[i] * x[i];
}
void launch(const float* x, float* y, int n) { cube_kernel<<<(n + 255) / 256, 256>>>(x, y, n); }
""", functions=["cube"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.cube(x)
