"""Linear layer on (batch_size, input_size), sigmoid, sum over features."""
import torch
import torch.nn as nn

batch_size = 128
input_size = 32768
hidden_size = 32768

SIZES = {"small": {"input_size": 512, "hidden_size": 512}}


class Model(nn.Module):
    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.linear = nn.Linear(input_size, hidden_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        x = torch.sigmoid(x)
        return torch.sum(x, dim=1, keepdim=True)


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_size]
