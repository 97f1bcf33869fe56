"""One step of a tanh RNN on (batch_size, input_size) from (batch_size, hidden_size) states, with an output layer."""
import torch
import torch.nn as nn

batch_size = 256
input_size = 16384
hidden_size = 16384
output_size = 8192

SIZES = {"small": {"batch_size": 64, "input_size": 512, "hidden_size": 512, "output_size": 256}}


class Model(nn.Module):
    def __init__(self, input_size: int, hidden_size: int, output_size: int):
        super().__init__()
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)

    def forward(self, x: torch.Tensor, initial_hidden: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.i2h(torch.cat([x, initial_hidden], dim=1)))
        return self.h2o(hidden)


def get_inputs():
    return [torch.rand(batch_size, input_size), torch.rand(batch_size, hidden_size)]


def get_init_inputs():
    return [input_size, hidden_size, output_size]
