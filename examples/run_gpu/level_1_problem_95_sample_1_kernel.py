"""Mean cross entropy of (rows, classes) logits and (rows,) int64 labels.

The loss of a row is log(sum exp(x - maximum)) + maximum - x[label]. A warp takes a row and keeps maximum and sum
together (online softmax), so that logits are read once and no log-softmax matrix is written. A second kernel averages
the rows' losses, always in the same order. Bound by memory: 0.54 GB read at the public size, 125 us on an H200.
float32 logits; PyTorch computes other types. A label of -100 is ignored, another one out of range gives NaN.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "torch::Tensor mean_cross_entropy(torch::Tensor logits, torch::Tensor labels);"
CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cfloat>

constexpr int kWarps = 8;
constexpr int kPacks = 8;  // loads of a thread that are under way together
constexpr int kMeanThreads = 1024;
constexpr int64_t kIgnored = -100;

template <int kWidth>
struct alignas(kWidth * sizeof(float)) Pack {
  float at[kWidth];
};

__device__ float sum_warp(float value) {
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(~0u, value, lanes);
  return value;
}

template <int kWidth>
__global__ void __launch_bounds__(32 * kWarps)
    loss_kernel(const float* __restrict__ logits, const int64_t* __restrict__ labels, int64_t rows,
                int64_t classes, float* __restrict__ losses) {
  const int64_t row = int64_t(blockIdx.x) * kWarps + threadIdx.y;
  if (row >= rows) return;
  const float* x = logits + row * classes;
  const auto* from = reinterpret_cast<const Pack<kWidth>*>(x);
  const int64_t packs = classes / kWidth;

  float maximum = -FLT_MAX, sum = 0.0f;  // of this lane
  for (int64_t first = threadIdx.x; first < packs; first += 32 * kPacks) {
    Pack<kWidth> pack[kPacks];
    float higher = maximum;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      for (float& value : pack[i].at) value = -FLT_MAX;
      if (first + i * 32 < packs) pack[i] = from[first + i * 32];
    }
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      for (float value : pack[i].at) higher = fmaxf(higher, value);
    }
    sum *= __expf(maximum - higher);
    maximum = higher;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      for (float value : pack[i].at) sum += __expf(value - maximum);
    }
  }
  float row_maximum = maximum;
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    row_maximum = fmaxf(row_maximum, __shfl_xor_sync(~0u, row_maximum, lanes));
  }
  sum = sum_warp(sum * __expf(maximum - row_maximum));
  if (threadIdx.x == 0) {
    const int64_t label = labels[row];
    const bool valid = label >= 0 && label < classes;
    losses[row] = label == kIgnored ? 0.0f : valid ? logf(sum) + (row_maximum - x[label]) : nanf("");
  }
}

__global__ void __launch_bounds__(kMeanThreads)
    mean_kernel(const float* __restrict__ losses, const int64_t* __restrict__ labels, int64_t rows,
                float* __restrict__ mean) {
  float sum = 0.0f, count = 0.0f;
  for (int64_t row = threadIdx.x; row < rows; row += kMeanThreads) {
    sum += losses[row], count += labels[row] != kIgnored;
  }
  __shared__ float sum_of_warp[32], count_of_warp[32];
  sum = sum_warp(sum), count = sum_warp(count);
  sum_of_warp[threadIdx.x / 32] = sum, count_of_warp[threadIdx.x / 32] = count;
  __syncthreads();
  sum = sum_warp(sum_of_warp[threadIdx.x % 32]), count = sum_warp(count_of_warp[threadIdx.x % 32]);
  if (threadIdx.x == 0) *mean = sum / count;
}

torch::Tensor mean_cross_entropy(torch::Tensor logits, torch::Tensor labels) {
  TORCH_CHECK(logits.is_cuda() && logits.is_contiguous() && labels.is_cuda() && labels.is_contiguous());
  TORCH_CHECK(logits.scalar_type() == torch::kFloat32 && labels.scalar_type() == torch::kInt64);
  TORCH_CHECK(logits.dim() == 2 && labels.dim() == 1 && labels.size(0) == logits.size(0) && logits.numel() > 0);
  const int64_t rows = logits.size(0), classes = logits.size(1);
  auto losses = torch::empty({rows}, logits.options()), mean = torch::empty({}, logits.options());
  const auto stream = c10::cuda::getCurrentCUDAStream();
  const bool wide = classes % 4 == 0 && reinterpret_cast<uintptr_t>(logits.data_ptr()) % 16 == 0;
  const auto kernel = wide ? loss_kernel<4> : loss_kernel<1>;
  kernel<<<unsigned((rows + kWarps - 1) / kWarps), dim3(32, kWarps), 0, stream>>>(
      logits.data_ptr<float>(), labels.data_ptr<int64_t>(), rows, classes, losses.data_ptr<float>());
  mean_kernel<<<1, kMeanThreads, 0, stream>>>(
      losses.data_ptr<float>(), labels.data_ptr<int64_t>(), rows, mean.data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return mean;
}
"""
extension = load_inline(name="example_cross_entropy", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE,
                        functions=["mean_cross_entropy"], extra_cuda_cflags=["-O3"])


class ModelNew(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        fits = predictions.dim() == 2 and targets.dim() == 1 and predictions.numel() > 0 and predictions.is_cuda
        fits = fits and predictions.dtype == torch.float32 and targets.dtype == torch.int64
        if fits and predictions.is_contiguous() and targets.is_contiguous():
            return extension.mean_cross_entropy(predictions, targets)
        return F.cross_entropy(predictions, targets)
