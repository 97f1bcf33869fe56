"""A ReLU perceptron: linear layers with ReLU between them.

PyTorch multiplies the matrices, without their biases; a kernel then adds the bias and applies ReLU in place, one pass
where PyTorch makes one for ReLU alone. Bound by the products: 172 GFLOP at the public size, 2.9 ms at an H200's
60 TFLOP/s of float32 (their 2.7 GB of weights take 0.6 ms). The activations are 8 MB and stay in the L2 cache, so
there is next to nothing to win: an example of a whole model, not of speed. float32; PyTorch computes other types.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "torch::Tensor bias_relu_(torch::Tensor x, torch::Tensor bias);"
CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kThreads = 256;

template <int kWidth>
struct alignas(kWidth * sizeof(float)) Pack {
  float at[kWidth];
};

// x is (rows, columns), one block row for each; NaN stays NaN, as in PyTorch.
template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    bias_relu_kernel(float* __restrict__ x, const float* __restrict__ bias, int64_t columns) {
  const int64_t column = (int64_t(blockIdx.y) * kThreads + threadIdx.x) * kWidth;
  if (column >= columns) return;
  auto& in_place = *reinterpret_cast<Pack<kWidth>*>(x + int64_t(blockIdx.x) * columns + column);
  Pack<kWidth> pack = in_place;
  const auto add = *reinterpret_cast<const Pack<kWidth>*>(bias + column);
#pragma unroll
  for (int j = 0; j < kWidth; ++j) {
    const float value = pack.at[j] + add.at[j];
    pack.at[j] = value < 0.0f ? 0.0f : value;
  }
  in_place = pack;
}

bool is_aligned(const torch::Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.data_ptr()) % 16 == 0;
}

torch::Tensor bias_relu_(torch::Tensor x, torch::Tensor bias) {
  for (const auto& tensor : {x, bias}) {
    TORCH_CHECK(tensor.is_cuda() && tensor.is_contiguous(), "the tensors must be contiguous, on a GPU");
    TORCH_CHECK(tensor.scalar_type() == torch::kFloat32, "the tensors must be float32");
  }
  TORCH_CHECK(x.dim() == 2 && bias.dim() == 1 && bias.size(0) == x.size(1), "unexpected shapes");
  if (x.numel() == 0) return x;
  const int64_t rows = x.size(0), columns = x.size(1);
  const bool wide = columns % 4 == 0 && is_aligned(x) && is_aligned(bias);
  const int64_t of_block = kThreads * (wide ? 4 : 1);
  const dim3 blocks(unsigned(rows), unsigned((columns + of_block - 1) / of_block));
  const auto kernel = wide ? bias_relu_kernel<4> : bias_relu_kernel<1>;
  kernel<<<blocks, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), bias.data_ptr<float>(), columns);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return x;
}
"""
extension = load_inline(name="example_bias_relu", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE,
                        functions=["bias_relu_"], extra_cuda_cflags=["-O3"])


class ModelNew(nn.Module):
    def __init__(self, input_size: int, layer_sizes: list, output_size: int):
        super().__init__()
        layers = []
        width = input_size
        for layer_size in layer_sizes:
            layers += [nn.Linear(width, layer_size), nn.ReLU()]
            width = layer_size
        layers.append(nn.Linear(width, output_size))
        self.network = nn.Sequential(*layers)  # the names of the reference's parameters

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not x.is_cuda or x.dtype != torch.float32 or x.dim() != 2:
            return self.network(x)
        *hidden, last = (layer for layer in self.network if isinstance(layer, nn.Linear))
        for layer in hidden:
            x = extension.bias_relu_(F.linear(x, layer.weight), layer.bias)
        return last(x)
