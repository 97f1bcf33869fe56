"""LayerNorm over all dimensions but the first, with weight and bias.

Samples are few and long, so many blocks share one. A block gives count, mean and squared deviations of its chunk,
from registers; one block a sample merges them, where E[x^2] - E[x]^2 would cancel. The last kernel walks through all
samples at one position, so that weight and bias are read once. Bound by memory: 0.84 GB moved at the public size (x
is read twice), 195 us on an H200. float32; PyTorch computes other types.
"""
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "torch::Tensor layer_norm_samples(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps);"
CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kThreads = 256;
constexpr int kHeld = 32;  // values of a thread
constexpr int kChunk = kThreads * kHeld;

// The sum over all threads, in each thread.
__device__ float sum_block(float value) {
  __shared__ float of_warp[kThreads / 32];
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(~0u, value, lanes);
  __syncthreads();  // nobody reads the last call's sums any more
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0.0f;
  for (float other : of_warp) value += other;
  return value;
}

// moments is (samples, chunks, 2): mean, and sum of (x - mean)^2.
__global__ void __launch_bounds__(kThreads)
    moments_kernel(const float* __restrict__ x, int64_t size, float* __restrict__ moments) {
  const int64_t begin = int64_t(blockIdx.x) * kChunk;
  const int count = int(min(int64_t(kChunk), size - begin));
  x += blockIdx.y * size + begin;
  float held[kHeld], sum = 0.0f, squares = 0.0f;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const int at = i * kThreads + threadIdx.x;
    held[i] = at < count ? x[at] : 0.0f;
    sum += held[i];
  }
  const float mean = sum_block(sum) / count;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const float deviation = i * kThreads + threadIdx.x < count ? held[i] - mean : 0.0f;
    squares += deviation * deviation;
  }
  squares = sum_block(squares);
  float* to = moments + 2 * (int64_t(blockIdx.y) * gridDim.x + blockIdx.x);
  if (threadIdx.x == 0) to[0] = mean, to[1] = squares;
}

// One block for each sample; `to` is (samples, 2): mean, and the factor that makes the variance 1.
__global__ void __launch_bounds__(kThreads)
    scaling_kernel(const float* __restrict__ moments, int64_t size, int chunks, float eps, float* __restrict__ to) {
  moments += int64_t(blockIdx.x) * chunks * 2;
  const auto count = [&](int chunk) { return float(min(int64_t(kChunk), size - int64_t(chunk) * kChunk)); };
  float sum = 0.0f, squares = 0.0f;
  for (int i = threadIdx.x; i < chunks; i += kThreads) sum += count(i) / float(size) * moments[2 * i];
  const float mean = sum_block(sum);
  for (int i = threadIdx.x; i < chunks; i += kThreads) {
    const float deviation = moments[2 * i] - mean;
    squares += moments[2 * i + 1] + count(i) * deviation * deviation;
  }
  squares = sum_block(squares);
  if (threadIdx.x == 0) to[2 * blockIdx.x] = mean, to[2 * blockIdx.x + 1] = 1.0f / sqrtf(squares / size + eps);
}

__global__ void __launch_bounds__(kThreads)
    scale_kernel(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                 const float* __restrict__ scaling, int64_t samples, int64_t size, float* __restrict__ y) {
  const int64_t at = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= size) return;
  const float w = weight[at], b = bias[at];
#pragma unroll 8
  for (int64_t sample = 0; sample < samples; ++sample) {
    y[sample * size + at] = (x[sample * size + at] - scaling[2 * sample]) * scaling[2 * sample + 1] * w + b;
  }
}

torch::Tensor layer_norm_samples(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
  for (const auto& tensor : {x, weight, bias}) {
    TORCH_CHECK(tensor.is_cuda() && tensor.is_contiguous() && tensor.scalar_type() == torch::kFloat32);
  }
  const int64_t samples = x.size(0), size = weight.numel(), chunks = (size + kChunk - 1) / kChunk;
  TORCH_CHECK(x.numel() > 0 && x.numel() == samples * size && bias.numel() == size && samples <= 65535);
  auto y = torch::empty_like(x);
  auto moments = torch::empty({samples, chunks, 2}, x.options()), scaling = torch::empty({samples, 2}, x.options());
  const auto stream = c10::cuda::getCurrentCUDAStream();
  moments_kernel<<<dim3(unsigned(chunks), unsigned(samples)), kThreads, 0, stream>>>(
      x.data_ptr<float>(), size, moments.data_ptr<float>());
  scaling_kernel<<<unsigned(samples), kThreads, 0, stream>>>(
      moments.data_ptr<float>(), size, int(chunks), float(eps), scaling.data_ptr<float>());
  scale_kernel<<<unsigned((size + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), scaling.data_ptr<float>(), samples,
      size, y.data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""
extension = load_inline(name="example_layer_norm", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE,
                        functions=["layer_norm_samples"], extra_cuda_cflags=["-O3"])


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape=normalized_shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        fits = x.is_cuda and x.dtype == torch.float32 and x.shape[1:] == self.ln.weight.shape
        if fits and x.is_contiguous() and 0 < x.size(0) <= 65535:
            return extension.layer_norm_samples(x, self.ln.weight, self.ln.bias, self.ln.eps)
        return self.ln(x)
