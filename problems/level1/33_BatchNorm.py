"""Applies batch normalisation, in training mode, to (batch_size, features, dim1, dim2)."""
import torch
import torch.nn as nn

batch_size = 64
features = 64
dim1 = 512
dim2 = 512

SIZES = {"small": {"batch_size": 4, "features": 16, "dim1": 64, "dim2": 64}}


class Model(nn.Module):
    def __init__(self, num_features: int):
        super().__init__()
        self.bn = nn.BatchNorm2d(num_features=num_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bn(x)


def get_inputs():
    return [torch.rand(batch_size, features, dim1, dim2)]


def get_init_inputs():
    return [features]
