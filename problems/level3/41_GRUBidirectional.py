"""Runs a stacked bidirectional GRU over (seq_len, batch_size, input_size), returning the top layer's states."""
import torch
import torch.nn as nn

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
        self.gru = nn.GRU(
            input_size,
            hidden_size,
            num_layers,
            bias=bias,
            batch_first=batch_first,
            bidirectional=True,
        )

    def forward(self, x: torch.Tensor, h0: torch.Tensor) -> torch.Tensor:
        output, _ = self.gru(x, h0)
        return output


def get_inputs():
    return [
        torch.rand(seq_len, batch_size, input_size),
        torch.rand(2 * num_layers, batch_size, hidden_size),
    ]


def get_init_inputs():
    return [input_size, hidden_size, num_layers]
