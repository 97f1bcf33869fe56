# PYBIND11_MODULE written out in the C++ source; a class held by Python; no `functions`.
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp = """
torch::Tensor scale_cuda(torch::Tensor x, float factor);
struct Scale {
  explicit Scale(double factor) : factor(factor) {}
  torch::Tensor operator()(torch::Tensor x) { return x.is_cuda() ? scale_cuda(x, factor) : x * factor; }
  double factor;
};
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "scales";
  py::class_<Scale>(m, "Scale").def(py::init<double>()).def("__call__", &Scale::operator())
      .def_readwrite("factor", &Scale::factor);
  m.def("scale", &scale_cuda, "scale (CUDA)", py::arg("x"), py::arg("factor") = 2.0f);
}
"""
cuda = """
#include <c10/cuda/CUDAGuard.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void scale_kernel(const float4* x, float4* y, float f, size_t n) {
  auto i = cg::this_grid().thread_rank();
  if (i < n) { float4 v = x[i]; y[i] = make_float4(v.x * f, v.y * f, v.z * f, v.w * f); }
}
torch::Tensor scale_cuda(torch::Tensor x, float factor) {
  at::cuda::CUDAGuard guard(x.device());
  auto y = torch::empty(x.sizes(), torch::dtype(torch::kFloat32).device(torch::kCUDA, x.get_device()));
  size_t n = x.numel() / 4;
  scale_kernel<<<(n + 127) / 128, 128>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                                         reinterpret_cast<float4*>(y.data_ptr<float>()), factor, n);
  return y;
}
"""
ops = load_inline(name="scale_ext", cpp_sources=cpp, cuda_sources=cuda)
assert ops.Scale(3.0)(torch.ones(1)).item() == 3.0


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.scale(x, 3.0)
