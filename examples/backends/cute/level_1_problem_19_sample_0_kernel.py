# ReLU: one pass, 16 bytes a thread where the number of elements allows.
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cutlass.cute.runtime import from_dlpack

THREADS = 256


@cute.kernel
def relu_kernel(x: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    at = block * THREADS + thread
    if at < cute.size(x, mode=[1]):
        value = x[(None, at)].load()
        zero = cute.zeros_like(value)
        out[(None, at)].store(cute.where(value < zero, zero, value))  # NaN stays NaN


@cute.jit
def relu(x: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream, each: cutlass.Constexpr):
    pieces, out_pieces = cute.zipped_divide(x, (each,)), cute.zipped_divide(out, (each,))
    relu_kernel(pieces, out_pieces).launch(
        grid=[(cute.size(pieces, mode=[1]) + THREADS - 1) // THREADS, 1, 1], block=[THREADS, 1, 1], stream=stream)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        each = 16 // x.element_size()
        if x.numel() % each:
            each = 1
        arguments = [from_dlpack(tensor.view(-1), assumed_align=16) for tensor in (x, out)]
        stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
        key = x.numel(), x.dtype
        if key not in self.compiled:
            self.compiled[key] = cute.compile(relu, *arguments, stream, each)
        self.compiled[key](*arguments, stream)
        return out
