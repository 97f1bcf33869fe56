# One pass instead of three: 12 bytes an element, which is all that memory has to move.
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cutlass.cute.runtime import from_dlpack

THREADS = 256


@cute.kernel
def scaled_residual_kernel(x: cute.Tensor, y: cute.Tensor, scale: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    rows, columns = x.shape
    at = cutlass.Int64(block) * THREADS + thread
    if at < cutlass.Int64(rows) * columns:
        row = at // columns
        column = at % columns
        value = x[row, column] * scale[column] + y[row, column]
        if value < 0.0:
            value = cutlass.Float32(0.0)
        out[row, column] = value


@cute.jit
def scaled_residual(x: cute.Tensor, y: cute.Tensor, scale: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    rows, columns = x.shape
    scaled_residual_kernel(x, y, scale, out).launch(
        grid=[(rows * columns + THREADS - 1) // THREADS, 1, 1], block=[THREADS, 1, 1], stream=stream)


class ModelNew(nn.Module):
    def __init__(self, columns: int):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(columns))
        self.compiled = {}

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        arguments = [from_dlpack(tensor, assumed_align=16) for tensor in (x, y, self.scale.detach(), out)]
        stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
        if x.shape not in self.compiled:
            self.compiled[x.shape] = cute.compile(scaled_residual, *arguments, stream)
        self.compiled[x.shape](*arguments, stream)
        return out
