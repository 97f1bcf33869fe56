# ReLU: one pass, as many bytes as the operation has to move.
import cupy
import numpy as np
import torch
import torch.nn as nn

TYPES = {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16"}
CODE = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T>
__global__ void relu(const T* __restrict__ x, T* __restrict__ out, long long n) {
  const long long step = (long long)(gridDim.x) * blockDim.x;
  for (long long i = (long long)(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    const float value = float(x[i]);
    out[i] = value < 0.0f ? T(0.0f) : x[i];  // NaN stays NaN
  }
}
"""
MODULE = cupy.RawModule(code=CODE, options=("-std=c++17",), name_expressions=[f"relu<{t}>" for t in TYPES.values()])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        n, threads = x.numel(), 256
        blocks = min((n + threads - 1) // threads, 65535)
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            MODULE.get_function(f"relu<{TYPES[x.dtype]}>")(
                (blocks,), (threads,), (x.data_ptr(), out.data_ptr(), np.int64(n)))
        return out
