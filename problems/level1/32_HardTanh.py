"""Applies clamp(x, -1, 1) element by element to a (batch_size, dim) matrix."""
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
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.hardtanh(x, min_val=-1.0, max_val=1.0)


def get_inputs():
    return [torch.randn(batch_size, dim)]


def get_init_inputs():
    return []
