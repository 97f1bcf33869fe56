"""Running sum of those elements of a (batch_size, *input_shape) tensor that a mask selects."""
import torch
import torch.nn as nn

batch_size = 32768
input_shape = (32768,)
dim = 1

SIZES = {"small": {"batch_size": 64, "input_shape": (16384,)}}


class Model(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x * mask, dim=self.dim)


def get_inputs():
    return [
        torch.rand(batch_size, *input_shape),
        torch.randint(0, 2, (batch_size, *input_shape), dtype=torch.bool),
    ]


def get_init_inputs():
    return [dim]
