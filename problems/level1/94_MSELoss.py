"""Computes the mean squared difference of two (batch_size, *input_shape) tensors."""
import torch
import torch.nn as nn

batch_size = 32768
input_shape = (32768,)
dim = 1

SIZES = {"small": {"batch_size": 64, "input_shape": (16384,)}}
ALTERED = (
    "Predictions have heavy tails: a sample of the public, uniform ones gives their mean loss."
)


class Model(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.mean((predictions - targets) ** 2)


def get_inputs():
    return [
        0.004 / (torch.rand(batch_size, *input_shape) + 1.6e-5),
        torch.rand(batch_size, *input_shape),
    ]


def get_init_inputs():
    return []
