# One pass instead of three: 12 bytes an element, which is all that memory has to move.
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scaled_residual_kernel(x_ptr, y_ptr, scale_ptr, out_ptr, n, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    y = tl.load(y_ptr + at, mask=inside)
    scale = tl.load(scale_ptr + at % columns, mask=inside)
    value = x * scale + y
    tl.store(out_ptr + at, tl.where(value < 0, 0.0, value), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, columns: int):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        n = x.numel()
        block = 1024
        scaled_residual_kernel[(triton.cdiv(n, block),)](x, y, self.scale, out, n, x.shape[1], BLOCK=block)
        return out
