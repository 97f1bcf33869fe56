"""Computes the running sum from the end along one dimension of (batch_size, *input_shape)."""
import torch
import torch.nn as nn

batch_size = 32768
input_shape = (32768,)
dim = 1

SIZES = {
    "small": {"batch_size": 64, "input_shape": (16384,)},
    "24gb": {"batch_size": 16384},
}


class Model(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x.flip(self.dim), dim=self.dim).flip(self.dim)


def get_inputs():
    return [torch.rand(batch_size, *input_shape)]


def get_init_inputs():
    return [dim]
