"""Linear layer on (batch_size, input_size), sigmoid, a second linear layer, logsumexp over features."""
import torch
import torch.nn as nn

batch_size = 16384
input_size = 2048
hidden_size = 4096
output_size = 1024

SIZES = {"small": {"batch_size": 256, "input_size": 256, "hidden_size": 512, "output_size": 128}}
ALTERED = "Inputs reach up to 10 rather than 1, for which the output would hardly depend on them."


class Model(nn.Module):
    def __init__(self, input_size: int, hidden_size: int, output_size: int):
        super().__init__()
        self.linear1 = nn.Linear(input_size, hidden_size)
        self.linear2 = nn.Linear(hidden_size, output_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear1(x)
        x = torch.sigmoid(x)
        x = self.linear2(x)
        return torch.logsumexp(x, dim=1)


def get_inputs():
    return [10 * torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_size, output_size]
