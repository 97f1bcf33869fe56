"""Linear layer on (batch_size, input_size) as y: sigmoid(y) * scaling_factor + y."""
import torch
import torch.nn as nn

batch_size = 1024
input_size = 8192
hidden_size = 8192
scaling_factor = 2.0

SIZES = {"small": {"batch_size": 256, "input_size": 512, "hidden_size": 512}}


class Model(nn.Module):
    def __init__(self, input_size: int, hidden_size: int, scaling_factor: float):
        super().__init__()
        self.gemm = nn.Linear(input_size, hidden_size)
        self.scaling_factor = scaling_factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.gemm(x)
        residual = x
        x = torch.sigmoid(x)
        x = x * self.scaling_factor
        return x + residual


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_size, scaling_factor]
