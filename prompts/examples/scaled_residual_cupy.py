# One pass instead of three: 12 bytes an element, which is all that memory has to move.
import cupy
import numpy as np
import torch
import torch.nn as nn

KERNEL = cupy.RawKernel(r"""
extern "C" __global__ void scaled_residual(const float* __restrict__ x, const float* __restrict__ y,
                                           const float* __restrict__ scale, float* __restrict__ out,
                                           long long n, int columns) {
  const long long step = (long long)(gridDim.x) * blockDim.x;
  for (long long i = (long long)(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    const float value = x[i] * scale[i % columns] + y[i];
    out[i] = value < 0.0f ? 0.0f : value;  // NaN stays NaN
  }
}
""", "scaled_residual")


class ModelNew(nn.Module):
    def __init__(self, columns: int):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        n, threads = x.numel(), 256
        blocks = min((n + threads - 1) // threads, 65535)
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            KERNEL((blocks,), (threads,), (x.data_ptr(), y.data_ptr(), self.scale.data_ptr(), out.data_ptr(),
                                           np.int64(n), np.int32(x.shape[1])))
        return out
