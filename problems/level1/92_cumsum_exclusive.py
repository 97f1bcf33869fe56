"""Sums what comes before each element along one dimension of (batch_size, *input_shape)."""
import torch
import torch.nn as nn

batch_size = 32768
input_shape = (32768,)
dim = 1

SIZES = {"small": {"batch_size": 64, "input_shape": (16384,)}}
ALTERED = (
    "The result starts with 0 along the dimension and has the shape of the input; the public "
    "one has another."
)


class Model(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before = x.narrow(self.dim, 0, x.size(self.dim) - 1)
        zero = torch.zeros_like(x.narrow(self.dim, 0, 1))
        return torch.cumsum(torch.cat([zero, before], dim=self.dim), dim=self.dim)


def get_inputs():
    return [torch.rand(batch_size, *input_shape)]


def get_init_inputs():
    return [dim]
