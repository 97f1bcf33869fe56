"""Averages KL(targets || predictions) over the rows of two (batch_size, *input_shape) tensors."""
import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 16384
input_shape = (16384,)
dim = 1

SIZES = {"small": {"batch_size": 64, "input_shape": (4096,)}}
ALTERED = (
    "A few elements hold most of each distribution: between the softmax of uniform ones, the "
    "divergence is a constant."
)


class Model(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.kl_div(torch.log(predictions), targets, reduction="batchmean")


def random_distributions():
    scale = 0.008 * torch.rand(batch_size, 1)
    weights = 1 + scale / (torch.rand(batch_size, *input_shape) + 2e-4) ** 2
    return weights / weights.sum(dim=dim, keepdim=True)


def get_inputs():
    return [random_distributions(), random_distributions()]


def get_init_inputs():
    return []
