"""Runs a stacked GRU over (seq_len, batch_size, input_size), returning the final hidden states."""
import math

import torch
import torch.nn as nn

ALTERED = (
    "the update gates start with biases for memories of up to seq_len steps; with the public problem's default"
    " ones, nothing of h0 and the early steps is left in the final states"
)

batch_size = 10
seq_len = 512
input_size = 128
hidden_size = 256
num_layers = 6

SIZES = {
    "small": {
        "seq_len": 32,
        "input_size": 64,
        "hidden_size": 96,
        "num_layers": 3,
    }
}


@torch.no_grad()
def remember(gru: nn.GRU, steps: int):
    """Draws biases for memories of 1 to `steps` steps."""
    for name, bias in gru.named_parameters():
        if name.startswith("bias_hh"):
            _, update_gate, _ = bias.chunk(3)
            update_gate.uniform_(0, math.log(steps))


class Model(nn.Module):
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 3,
        bias: bool = True,
        batch_first: bool = False,
    ):
        super().__init__()
        self.gru = nn.GRU(input_size, hidden_size, num_layers, bias=bias, batch_first=batch_first)
        remember(self.gru, seq_len)

    def forward(self, x: torch.Tensor, h0: torch.Tensor) -> torch.Tensor:
        _, h_n = self.gru(x, h0)
        return h_n


def get_inputs():
    return [
        torch.rand(seq_len, batch_size, input_size),
        torch.rand(num_layers, batch_size, hidden_size),
    ]


def get_init_inputs():
    return [input_size, hidden_size, num_layers]
