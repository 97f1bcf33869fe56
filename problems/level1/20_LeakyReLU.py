"""Applies the leaky rectified linear unit element by element to a (batch_size, dim) matrix."""
import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 4096
dim = 393216

SIZES = {
    "small": {"batch_size": 64, "dim": 24576},
    "24gb": {"batch_size": 2048},
}
ALTERED = (
    "Inputs are normal: uniform in [0, 1), as the public ones are, the operation would return "
    "them unchanged."
)


class Model(nn.Module):
    def __init__(self, negative_slope: float = 0.01):
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.leaky_relu(x, negative_slope=self.negative_slope)


def get_inputs():
    return [torch.randn(batch_size, dim)]


def get_init_inputs():
    return []
