"""Runs a tanh RNN over (sequence_length, batch_size, input_size) from h0, with an output layer after each step."""
import torch
import torch.nn as nn

batch_size = 8
input_size = 1024
hidden_size = 256
output_size = 128
sequence_length = 256

SIZES = {"small": {"input_size": 128, "hidden_size": 64, "output_size": 32, "sequence_length": 32}}


class Model(nn.Module):
    def __init__(self, input_size: int, hidden_size: int, output_size: int):
        super().__init__()
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)

    def forward(self, x: torch.Tensor, h0: torch.Tensor) -> torch.Tensor:
        hidden = h0
        outputs = []
        for step in x:
            hidden = torch.tanh(self.i2h(torch.cat([step, hidden], dim=1)))
            outputs.append(self.h2o(hidden))
        return torch.stack(outputs)


def get_inputs():
    return [
        torch.rand(sequence_length, batch_size, input_size),
        torch.rand(batch_size, hidden_size),
    ]


def get_init_inputs():
    return [input_size, hidden_size, output_size]
