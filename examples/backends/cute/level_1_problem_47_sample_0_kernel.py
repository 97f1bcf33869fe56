# Sum over the middle dimension: a thread adds up one column in float32, and neighbours read neighbouring addresses.
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cutlass.cute.runtime import from_dlpack

THREADS = 128


@cute.kernel
def sum_kernel(x: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, batch, _ = cute.arch.block_idx()
    column = block * THREADS + thread
    _, rows, columns = x.shape
    if column < columns:
        total = cutlass.Float32(0.0)
        for row in cutlass.range(rows, unroll=4):
            total += x[batch, row, column].to(cutlass.Float32)
        out[batch, column] = total.to(out.element_type)


@cute.jit
def sum_of_rows(x: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    batches, _, columns = x.shape
    sum_kernel(x, out).launch(grid=[(columns + THREADS - 1) // THREADS, batches, 1], block=[THREADS, 1, 1],
                              stream=stream)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim
        self.compiled = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dim() != 3 or self.dim != 1:
            return torch.sum(x, dim=self.dim, keepdim=True)
        x = x.contiguous()
        out = torch.empty((x.shape[0], x.shape[2]), dtype=x.dtype, device=x.device)
        arguments = [from_dlpack(tensor) for tensor in (x, out)]
        stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
        key = x.shape, x.dtype
        if key not in self.compiled:
            self.compiled[key] = cute.compile(sum_of_rows, *arguments, stream)
        self.compiled[key](*arguments, stream)
        return out.unsqueeze(1)
