"""Computes the mean triplet margin loss of three (batch_size, *input_shape) tensors."""
import torch
import torch.nn as nn

batch_size = 32768
input_shape = (8192,)
dim = 1

SIZES = {"small": {"batch_size": 256, "input_shape": (1024,)}}
ALTERED = (
    "Positives and negatives have heavy tails: at uniform ones the distances cancel, and the "
    "loss is the margin."
)


class Model(nn.Module):
    def __init__(self, margin: float = 1.0):
        super().__init__()
        self.loss_fn = nn.TripletMarginLoss(margin=margin)

    def forward(
        self,
        anchor: torch.Tensor,
        positive: torch.Tensor,
        negative: torch.Tensor,
    ) -> torch.Tensor:
        return self.loss_fn(anchor, positive, negative)


def heavy_tailed():
    rare = 0.004 / (torch.rand(batch_size, *input_shape) + 1.6e-5)
    return torch.rand(batch_size, *input_shape) + rare


def get_inputs():
    return [torch.rand(batch_size, *input_shape), heavy_tailed(), heavy_tailed()]


def get_init_inputs():
    return [1.0]
