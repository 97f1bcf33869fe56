# Sum over the middle dimension: a block adds up a strip of columns, a thread one of them, in float32.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn

TYPES = {torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32"}


@tilelang.jit(out_idx=[1])
def sum_of_rows(batches, rows, columns, dtype, threads=128):
    @T.prim_func
    def kernel(x: T.Tensor((batches, rows, columns), dtype), out: T.Tensor((batches, columns), dtype)):
        with T.Kernel(T.ceildiv(columns, threads), batches, threads=threads) as (block, batch):
            total = T.alloc_fragment((threads,), "float32")
            T.clear(total)
            for row in T.serial(rows):
                for i in T.Parallel(threads):
                    if block * threads + i < columns:
                        total[i] += T.cast(x[batch, row, block * threads + i], "float32")
            for i in T.Parallel(threads):
                if block * threads + i < columns:
                    out[batch, block * threads + i] = T.cast(total[i], dtype)

    return kernel


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim
        self.kernels = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dim() != 3 or self.dim != 1:
            return torch.sum(x, dim=self.dim, keepdim=True)
        key = x.shape, x.dtype
        if key not in self.kernels:
            self.kernels[key] = sum_of_rows(*x.shape, TYPES[x.dtype])
        return self.kernels[key](x.contiguous()).unsqueeze(1)
