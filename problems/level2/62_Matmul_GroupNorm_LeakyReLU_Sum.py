"""Linear layer on (batch_size, input_size), GroupNorm, LeakyReLU, added to itself."""
import torch
import torch.nn as nn

batch_size = 1024
input_size = 8192
hidden_size = 8192
num_groups = 512

SIZES = {"small": {"batch_size": 256, "input_size": 512, "hidden_size": 512, "num_groups": 32}}


class Model(nn.Module):
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_groups: int,
        eps: float = 1e-5,
        negative_slope: float = 0.01,
    ):
        super().__init__()
        self.fc = nn.Linear(input_size, hidden_size)
        self.gn = nn.GroupNorm(num_groups, hidden_size, eps=eps)
        self.leaky_relu = nn.LeakyReLU(negative_slope)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc(x)
        x = self.gn(x)
        x = self.leaky_relu(x)
        return x + x


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_size, num_groups]
