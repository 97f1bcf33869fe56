# cuBLAS by PyTorch's handle, linked by extra_ldflags; a custom epilogue.
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cublas_v2.h>
#include <vector>

__global__ void bias_relu(float* y, const float* b, int rows, int columns) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * columns) { float v = y[i] + b[i % columns]; y[i] = v > 0.f ? v : 0.f; }
}

std::vector<at::Tensor> linear_relu(at::Tensor x, at::Tensor w, c10::optional<at::Tensor> bias) {
  x = x.contiguous();
  const int m = x.size(0), k = x.size(1), n = w.size(0);
  auto y = at::empty({m, n}, x.options().dtype(at::kFloat));
  auto b = bias.has_value() ? *bias : torch::zeros({n}, x.options());
  cublasHandle_t handle = at::cuda::getCurrentCUDABlasHandle();
  const float one = 1.f, zero = 0.f;
  auto status = cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, w.data_ptr<float>(), k,
                            x.data_ptr<float>(), k, &zero, y.data_ptr<float>(), n);
  TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, "cublasSgemm failed: ", static_cast<int>(status));
  bias_relu<<<(m * n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(y.data_ptr<float>(),
                                                                              b.data_ptr<float>(), m, n);
  return {y, b};
}
"""
cpp = """
#include <vector>
std::vector<at::Tensor> linear_relu(at::Tensor x, at::Tensor w, c10::optional<at::Tensor> bias);
"""
ops = load_inline(name="linear_relu_ext", cpp_sources=[cpp], cuda_sources=[cuda], functions=["linear_relu"],
                  extra_ldflags=["-lcublas"])


class ModelNew(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.linear = nn.Linear(k, n)

    def forward(self, x):
        return ops.linear_relu(x, self.linear.weight, self.linear.bias)[0]
