"""Runs a bidirectional LSTM over (batch_size, sequence_length, input_size), then a linear layer on the last output."""
import math

import torch
import torch.nn as nn

ALTERED = (
    "the gates start with biases for memories of up to sequence_length steps; with the public problem's default"
    " ones, nothing of h0, c0 and the early steps is left in the forward half of the last output"
)

batch_size = 10
sequence_length = 512
input_size = 128
hidden_size = 256
num_layers = 6
output_size = 10
dropout = 0.0

SIZES = {
    "small": {
        "sequence_length": 32,
        "input_size": 64,
        "hidden_size": 96,
        "num_layers": 3,
    }
}


@torch.no_grad()
def remember(lstm: nn.LSTM, steps: int):
    """Draws biases for memories of 1 to `steps` steps, the longer ones of which take less in at each."""
    for name, bias in lstm.named_parameters():
        if name.startswith("bias_hh"):
            input_gate, forget_gate, _, _ = bias.chunk(4)
            forget_gate.uniform_(0, math.log(steps))
            input_gate.copy_(-forget_gate / 2)


class Model(nn.Module):
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        output_size: int,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.lstm = nn.LSTM(
            input_size,
            hidden_size,
            num_layers,
            batch_first=True,
            dropout=dropout,
            bidirectional=True,
        )
        remember(self.lstm, sequence_length)
        self.fc = nn.Linear(2 * hidden_size, output_size)

    def forward(self, x: torch.Tensor, h0: torch.Tensor, c0: torch.Tensor) -> torch.Tensor:
        output, _ = self.lstm(x, (h0, c0))
        return self.fc(output[:, -1])


def get_inputs():
    return [
        torch.rand(batch_size, sequence_length, input_size),
        torch.rand(2 * num_layers, batch_size, hidden_size),
        torch.rand(2 * num_layers, batch_size, hidden_size),
    ]


def get_init_inputs():
    return [input_size, hidden_size, num_layers, output_size, dropout]
