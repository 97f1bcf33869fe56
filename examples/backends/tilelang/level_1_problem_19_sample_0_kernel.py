# ReLU: one pass, as many bytes as the operation has to move.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn

TYPES = {torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32"}


@tilelang.jit(out_idx=[1])
def relu(rows, columns, dtype, block_columns=2048, threads=256):
    @T.prim_func
    def kernel(x: T.Tensor((rows, columns), dtype), out: T.Tensor((rows, columns), dtype)):
        with T.Kernel(T.ceildiv(columns, block_columns), rows, threads=threads) as (block, row):
            for i in T.Parallel(block_columns):
                column = block * block_columns + i
                if column < columns:
                    value = x[row, column]
                    zero = T.cast(0, dtype)
                    out[row, column] = T.if_then_else(value < zero, zero, value)  # NaN stays NaN

    return kernel


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernels = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.contiguous().view(-1, x.shape[-1])
        key = flat.shape, x.dtype
        if key not in self.kernels:
            self.kernels[key] = relu(*flat.shape, TYPES[x.dtype])
        return self.kernels[key](flat).view(x.shape)
