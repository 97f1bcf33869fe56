"""Normalises each row of a (batch_size, dim) matrix with the softmax function."""
import torch
import torch.nn as nn

batch_size = 4096
dim = 393216

SIZES = {
    "small": {"batch_size": 16, "dim": 98304},
    "24gb": {"batch_size": 2048},
}
ALTERED = (
    "Inputs are normal and wide: the softmax of uniform ones in [0, 1) is nowhere larger than "
    "1e-5."
)


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)


def get_inputs():
    return [4 * torch.randn(batch_size, dim)]


def get_init_inputs():
    return []
