# Sum over the middle dimension: a program adds up a strip of columns, tile by tile, in float32.
import torch
import torch.nn as nn
import triton
import triton.language as tl

ROWS, COLUMNS = 32, 128  # of a tile


@triton.jit
def sum_kernel(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    batch = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    row = tl.arange(0, ROWS)
    place = x_ptr + batch * rows * columns + row[:, None].to(tl.int64) * columns + column[None, :]
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, rows, ROWS):
        inside = (start + row < rows)[:, None] & (column < columns)[None, :]
        total += tl.load(place, mask=inside, other=0.0).to(tl.float32)
        place += ROWS * columns
    tl.store(out_ptr + batch * columns + column, tl.sum(total, axis=0), mask=column < columns)


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
        sum_kernel[(batches, triton.cdiv(columns, COLUMNS))](x, out, rows, columns, ROWS=ROWS, COLUMNS=COLUMNS)
        return out
