"""Finds where (batch_size, dim1, dim2) is smallest along one dimension; ties go to the first."""
import torch
import torch.nn as nn

batch_size = 128
dim1 = 4096
dim2 = 4095
dim = 1

SIZES = {"small": {"batch_size": 16, "dim1": 512, "dim2": 511}}


class Model(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.argmin(x, dim=self.dim)


def get_inputs():
    return [torch.rand(batch_size, dim1, dim2)]


def get_init_inputs():
    return [dim]
