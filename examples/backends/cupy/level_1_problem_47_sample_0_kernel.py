# Sum over the middle dimension: a thread adds up one column, and neighbours read neighbouring addresses.
import cupy
import numpy as np
import torch
import torch.nn as nn

TYPES = {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16"}
CODE = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T>
__global__ void sum_of_rows(const T* __restrict__ x, T* __restrict__ out, int rows, int columns) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  const T* at = x + (long long)(blockIdx.y) * rows * columns + column;
  float total[4] = {};  // four loads under way at a time
  int row = 0;
  for (; row + 4 <= rows; row += 4, at += 4ll * columns)
    for (int i = 0; i < 4; ++i) total[i] += float(at[(long long)(i) * columns]);
  for (; row < rows; ++row, at += columns) total[0] += float(*at);
  out[(long long)(blockIdx.y) * columns + column] = T((total[0] + total[1]) + (total[2] + total[3]));
}
"""
MODULE = cupy.RawModule(code=CODE, options=("-std=c++17",),
                        name_expressions=[f"sum_of_rows<{t}>" for t in TYPES.values()])


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dim() != 3 or self.dim != 1:
            return torch.sum(x, dim=self.dim, keepdim=True)
        x = x.contiguous()
        batches, rows, columns = x.shape
        out = torch.empty((batches, 1, columns), dtype=x.dtype, device=x.device)
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            MODULE.get_function(f"sum_of_rows<{TYPES[x.dtype]}>")(
                ((columns + 127) // 128, batches), (128,),
                (x.data_ptr(), out.data_ptr(), np.int32(rows), np.int32(columns)))
        return out
