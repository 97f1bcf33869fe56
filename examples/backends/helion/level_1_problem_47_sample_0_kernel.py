# Sum over the middle dimension: a program adds up a strip of columns, tile by tile, in float32.
import helion
import helion.language as hl
import torch
import torch.nn as nn


@helion.kernel(config=helion.Config(block_sizes=[1, 128, 32], num_warps=4), static_shapes=True)
def sum_of_rows(x: torch.Tensor) -> torch.Tensor:
    batches, rows, columns = x.shape
    out = torch.empty((batches, columns), dtype=x.dtype, device=x.device)
    for batch, column in hl.tile([batches, columns]):
        total = hl.zeros([batch, column], dtype=torch.float32)
        for row in hl.tile(rows):
            total = total + x[batch, row, column].to(torch.float32).sum(1)
        out[batch, column] = total.to(x.dtype)
    return out


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dim() != 3 or self.dim != 1:
            return torch.sum(x, dim=self.dim, keepdim=True)
        return sum_of_rows(x.contiguous()).unsqueeze(1)
