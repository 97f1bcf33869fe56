# Linear, ReLU and the division in one kernel: tiles feed the tensor cores through a pipeline of copies, sums are
# float32, and what follows the product never leaves the registers.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn

TYPES = {torch.float16: "float16", torch.bfloat16: "bfloat16"}


@tilelang.jit(out_idx=[3])
def linear_relu_divide(m, n, k, divisor, dtype, tile_m=128, tile_n=128, tile_k=64, threads=128):
    @T.prim_func
    def kernel(x: T.Tensor((m, k), dtype), weight: T.Tensor((n, k), dtype), bias: T.Tensor((n,), dtype),
               out: T.Tensor((m, n), dtype)):
        with T.Kernel(T.ceildiv(n, tile_n), T.ceildiv(m, tile_m), threads=threads) as (block_n, block_m):
            x_tile = T.alloc_shared((tile_m, tile_k), dtype)
            weight_tile = T.alloc_shared((tile_n, tile_k), dtype)
            total = T.alloc_fragment((tile_m, tile_n), "float32")
            T.clear(total)
            for step in T.Pipelined(T.ceildiv(k, tile_k), num_stages=3):
                T.copy(x[block_m * tile_m, step * tile_k], x_tile)
                T.copy(weight[block_n * tile_n, step * tile_k], weight_tile)
                T.gemm(x_tile, weight_tile, total, transpose_B=True)
            for i, j in T.Parallel(tile_m, tile_n):
                if block_m * tile_m + i < m and block_n * tile_n + j < n:
                    value = total[i, j] + T.cast(bias[block_n * tile_n + j], "float32")
                    out[block_m * tile_m + i, block_n * tile_n + j] = T.cast(
                        T.if_then_else(value < 0.0, 0.0, value) / divisor, dtype)

    return kernel


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int, divisor: float):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.divisor = divisor
        self.kernels = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, bias = self.linear.weight.detach(), self.linear.bias.detach()
        key = x.shape, x.dtype
        if key not in self.kernels:
            self.kernels[key] = linear_relu_divide(x.shape[0], *weight.shape, self.divisor, TYPES[x.dtype])
        return self.kernels[key](x.contiguous(), weight, bias)
