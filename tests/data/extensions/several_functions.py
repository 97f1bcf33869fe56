# Several functions, each twice: two modules in one file, many operators in the launchers.
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

norm_source = """
#include <torch/extension.h>
#include <tuple>
__global__ void row_sums(const float* x, float* s, float* q, int columns) {
  __shared__ float a[256], b[256];
  float u = 0, v = 0;
  for (int i = threadIdx.x; i < columns; i += 256) { float t = x[blockIdx.x * columns + i]; u += t; v += t * t; }
  a[threadIdx.x] = u; b[threadIdx.x] = v;
  __syncthreads();
  for (int n = 128; n; n /= 2) {
    if (threadIdx.x < n) { a[threadIdx.x] += a[threadIdx.x + n]; b[threadIdx.x] += b[threadIdx.x + n]; }
    __syncthreads();
  }
  if (threadIdx.x == 0) { s[blockIdx.x] = a[0]; q[blockIdx.x] = b[0]; }
}
std::tuple<torch::Tensor, torch::Tensor> moments(torch::Tensor x, double eps) {
  TORCH_CHECK(x.dim() == 2 && x.dtype() == torch::kFloat32, "expected a float matrix, got ", x.sizes());
  auto options = torch::TensorOptions().dtype(torch::kFloat32).device(x.device());
  auto s = torch::zeros({x.size(0)}, options), q = torch::full({x.size(0)}, 0.0, options);
  row_sums<<<x.size(0), 256>>>(x.data_ptr<float>(), s.data_ptr<float>(), q.data_ptr<float>(), x.size(1));
  auto mean = s / x.size(1);
  auto variance = torch::clamp(q / x.size(1) - mean * mean, 0);
  return std::make_tuple(mean, torch::rsqrt(variance + eps));
}
torch::Tensor normalize(torch::Tensor x, double eps) {
  auto [mean, scale] = moments(x, eps);
  return (x - mean.unsqueeze(1)) * scale.unsqueeze(1);
}
"""
norm = load_inline(name="norm", cpp_sources="""
std::tuple<torch::Tensor, torch::Tensor> moments(torch::Tensor x, double eps);
torch::Tensor normalize(torch::Tensor x, double eps);""", cuda_sources=norm_source, functions=["moments", "normalize"])

scan_source = """
#include <torch/torch.h>
__global__ void add_rows(const float* x, float* y, int rows, int columns) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= columns) return;
  float sum = 0;
  for (int r = 0; r < rows; ++r) y[r * columns + c] = sum += x[r * columns + c];
}
torch::Tensor scan(torch::Tensor x, int64_t dim) {
  auto moved = x.transpose(0, dim).contiguous();
  auto y = torch::ones_like(moved);
  add_rows<<<(moved.size(1) + 255) / 256, 256>>>(moved.data_ptr<float>(), y.data_ptr<float>(), moved.size(0), moved.size(1));
  cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) { AT_ERROR("scan: ", cudaGetErrorString(error)); }
  return torch::cat({y, torch::stack({moved[0], moved[-1]})}).slice(0, 0, moved.size(0)).transpose(0, dim);
}
"""
scan = load_inline(name="scan", cpp_sources="torch::Tensor scan(torch::Tensor x, int64_t dim);",
                   cuda_sources=scan_source, functions="scan")


class ModelNew(nn.Module):
    def forward(self, x):
        return scan.scan(norm.normalize(x, 1e-5), 1)
