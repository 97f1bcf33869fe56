"""Scales each column of a matrix by a learned factor, adds a second matrix, and cuts negative values off."""
import torch
import torch.nn as nn

rows = 8192
columns = 4096

SIZES = {"small": {"rows": 64, "columns": 500}}


class Model(nn.Module):
    def __init__(self, columns: int):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(x * self.scale + y)


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs():
    return [columns]
