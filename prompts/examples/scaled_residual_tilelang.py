# One pass instead of three: 12 bytes an element, which is all that memory has to move.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[3])
def scaled_residual(rows, columns, block_rows=4, block_columns=512, threads=256, dtype="float32"):
    @T.prim_func
    def kernel(x: T.Tensor((rows, columns), dtype), y: T.Tensor((rows, columns), dtype),
               scale: T.Tensor((columns,), dtype), out: T.Tensor((rows, columns), dtype)):
        with T.Kernel(T.ceildiv(columns, block_columns), T.ceildiv(rows, block_rows), threads=threads) as (bx, by):
            for i, j in T.Parallel(block_rows, block_columns):
                row = by * block_rows + i
                column = bx * block_columns + j
                if row < rows and column < columns:
                    value = x[row, column] * scale[column] + y[row, column]
                    out[row, column] = T.if_then_else(value < 0.0, 0.0, value)  # NaN stays NaN

    return kernel


class ModelNew(nn.Module):
    def __init__(self, columns: int):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(columns))
        self.kernels = {}

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.shape not in self.kernels:
            self.kernels[x.shape] = scaled_residual(*x.shape)
        return self.kernels[x.shape](x.contiguous(), y.contiguous(), self.scale.detach())
