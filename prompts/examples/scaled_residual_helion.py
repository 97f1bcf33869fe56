# One pass instead of three: 12 bytes an element, which is all that memory has to move.
import helion
import helion.language as hl
import torch
import torch.nn as nn


@helion.kernel(config=helion.Config(block_sizes=[1, 1024], num_warps=4), static_shapes=True)
def scaled_residual(x: torch.Tensor, y: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    rows, columns = x.shape
    out = torch.empty_like(x)
    for row, column in hl.tile([rows, columns]):
        value = x[row, column] * scale[column][None, :] + y[row, column]
        out[row, column] = torch.where(value < 0, 0.0, value)
    return out


class ModelNew(nn.Module):
    def __init__(self, columns: int):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return scaled_residual(x, y, self.scale.detach())
