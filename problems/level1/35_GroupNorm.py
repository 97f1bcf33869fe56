"""Applies group normalisation to (batch_size, features, dim1, dim2), in num_groups groups."""
import torch
import torch.nn as nn

batch_size = 112
features = 64
num_groups = 8
dim1 = 512
dim2 = 512

SIZES = {
    "small": {"batch_size": 4, "features": 16, "dim1": 64, "dim2": 64},
    "24gb": {"batch_size": 56},
}


class Model(nn.Module):
    def __init__(self, num_features: int, num_groups: int):
        super().__init__()
        self.gn = nn.GroupNorm(num_groups=num_groups, num_channels=num_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gn(x)


def get_inputs():
    return [torch.rand(batch_size, features, dim1, dim2)]


def get_init_inputs():
    return [features, num_groups]
