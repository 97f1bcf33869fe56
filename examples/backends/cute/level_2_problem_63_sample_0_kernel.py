# Linear, ReLU and the division in one kernel, with float32 sums: a block computes 64 x 64 outputs from tiles in
# shared memory, a thread 4 x 4 of them. The result is written once.
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cutlass.cute.runtime import from_dlpack

TILE, INNER, EACH, THREADS = 64, 16, 4, 256


@cute.kernel
def linear_relu_divide_kernel(x: cute.Tensor, weight: cute.Tensor, bias: cute.Tensor, out: cute.Tensor,
                              divisor: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block_n, block_m, _ = cute.arch.block_idx()
    m, k = x.shape
    n, _ = weight.shape
    layout = cute.make_layout((INNER, TILE), stride=(TILE + 1, 1))
    storage = cutlass.utils.SmemAllocator()
    x_tile = storage.allocate_tensor(cutlass.Float32, layout, 16)
    weight_tile = storage.allocate_tensor(cutlass.Float32, layout, 16)
    total = cute.make_rmem_tensor((EACH, EACH), cutlass.Float32)
    total.fill(0.0)
    r, c = thread // 16, thread % 16
    for step in range((k + INNER - 1) // INNER):
        for i in cutlass.range_constexpr(TILE * INNER // THREADS):
            index = i * THREADS + thread
            outer, inner = index // INNER, index % INNER
            at = step * INNER + inner
            x_value, weight_value = cutlass.Float32(0.0), cutlass.Float32(0.0)
            if at < k and block_m * TILE + outer < m:
                x_value = x[block_m * TILE + outer, at].to(cutlass.Float32)
            if at < k and block_n * TILE + outer < n:
                weight_value = weight[block_n * TILE + outer, at].to(cutlass.Float32)
            x_tile[inner, outer] = x_value
            weight_tile[inner, outer] = weight_value
        cute.arch.sync_threads()
        for inner in cutlass.range_constexpr(INNER):
            for i in cutlass.range_constexpr(EACH):
                for j in cutlass.range_constexpr(EACH):
                    total[i, j] += x_tile[inner, r + 16 * i] * weight_tile[inner, c + 16 * j]
        cute.arch.sync_threads()
    for i in cutlass.range_constexpr(EACH):
        for j in cutlass.range_constexpr(EACH):
            row, column = block_m * TILE + r + 16 * i, block_n * TILE + c + 16 * j
            if row < m and column < n:
                value = total[i, j] + bias[column].to(cutlass.Float32)
                if value < 0.0:
                    value = cutlass.Float32(0.0)
                out[row, column] = (value / divisor).to(out.element_type)


@cute.jit
def linear_relu_divide(x: cute.Tensor, weight: cute.Tensor, bias: cute.Tensor, out: cute.Tensor,
                       stream: cuda.CUstream, divisor: cutlass.Constexpr):
    m, _ = x.shape
    n, _ = weight.shape
    linear_relu_divide_kernel(x, weight, bias, out, divisor).launch(
        grid=[(n + TILE - 1) // TILE, (m + TILE - 1) // TILE, 1], block=[THREADS, 1, 1], stream=stream)


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int, divisor: float):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.divisor = divisor
        self.compiled = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        weight, bias = self.linear.weight.detach(), self.linear.bias.detach()
        out = torch.empty((x.shape[0], weight.shape[0]), dtype=x.dtype, device=x.device)
        arguments = [from_dlpack(tensor) for tensor in (x, weight, bias, out)]
        stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
        key = x.shape, x.dtype
        if key not in self.compiled:
            self.compiled[key] = cute.compile(linear_relu_divide, *arguments, stream, self.divisor)
        self.compiled[key](*arguments, stream)
        return out
