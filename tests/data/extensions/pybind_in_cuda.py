# Everything in one .cu file, its bindings too; `load` from files in a temporary folder.
import os
import tempfile

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load

folder = tempfile.mkdtemp()
os.makedirs(os.path.join(folder, "include"))
with open(os.path.join(folder, "include", "tanh_shrink.cuh"), "w") as f:
    f.write("""
#pragma once
template <typename T>
__device__ __forceinline__ T tanh_shrink(T x) { return x - tanh(x); }
inline at::Tensor like(const at::Tensor& x) { return at::zeros_like(x); }
""")
with open(os.path.join(folder, "kernel.cu"), "w") as f:
    f.write("""
#include <torch/extension.h>
#include <pybind11/pybind11.h>
#include "tanh_shrink.cuh"
namespace py = pybind11;
template <typename scalar_t>
__global__ void kernel(torch::PackedTensorAccessor32<scalar_t, 1, torch::RestrictPtrTraits> x,
                       torch::PackedTensorAccessor32<scalar_t, 1, torch::RestrictPtrTraits> y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < x.size(0)) y[i] = tanh_shrink(x[i]);
}
at::Tensor forward(const at::Tensor& input, py::object) {
  auto x = input.reshape({-1});
  auto y = like(x);
  AT_DISPATCH_FLOATING_TYPES(x.type().scalarType(), "forward", ([&] {
    kernel<scalar_t><<<(x.numel() + 255) / 256, 256>>>(x.packed_accessor32<scalar_t, 1, torch::RestrictPtrTraits>(),
                                                       y.packed_accessor32<scalar_t, 1, torch::RestrictPtrTraits>());
  }));
  return y.view_as(input);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &forward, py::arg("input"), py::arg("other") = py::none(), "x - tanh(x)");
}
""")
ops = load(name="tanh_shrink", sources=[os.path.join(folder, "kernel.cu")],
           extra_include_paths=[os.path.join(folder, "include")], extra_cuda_cflags=["-O2", "-lineinfo"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.forward(x)
