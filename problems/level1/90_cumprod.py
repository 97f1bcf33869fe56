"""Computes the running product along one dimension of a (batch_size, *input_shape) tensor."""
import torch
import torch.nn as nn

batch_size = 32768
input_shape = (32768,)
dim = 1

SIZES = {"small": {"batch_size": 64, "input_shape": (16384,)}}
ALTERED = (
    "Inputs are close to 1: products of uniform ones in [0, 1) are zero after the first "
    "hundred elements."
)


class Model(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumprod(x, dim=self.dim)


def get_inputs():
    return [torch.empty(batch_size, *input_shape).uniform_(0.99, 1.01)]


def get_init_inputs():
    return [dim]
