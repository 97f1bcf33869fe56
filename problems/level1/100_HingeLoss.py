"""Mean hinge loss of (batch_size, *input_shape) scores; each column has a label of 1 or -1."""
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
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))


def get_inputs():
    rare = (0.0035 / (torch.rand(batch_size, *input_shape) + 1.6e-5)) ** 2
    return [
        2 * torch.rand(batch_size, *input_shape) + rare,
        2.0 * torch.randint(0, 2, input_shape) - 1.0,
    ]


def get_init_inputs():
    return []
