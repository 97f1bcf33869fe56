# ReLU: one pass, as many bytes as the operation has to move.
import helion
import helion.language as hl
import torch
import torch.nn as nn


@helion.kernel(config=helion.Config(block_sizes=[4096], num_warps=8), static_shapes=True)
def relu(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for at in hl.tile(x.size(0)):
        value = x[at]
        out[at] = torch.where(value < 0, 0.0, value)
    return out


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return relu(x.reshape(-1)).view(x.shape)
