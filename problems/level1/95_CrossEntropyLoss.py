"""Computes the mean cross entropy of (batch_size, num_classes) logits and (batch_size,) labels."""
import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 32768
num_classes = 4096
input_shape = (4096,)

SIZES = {"small": {"batch_size": 256}}
ALTERED = (
    "Each row of logits has a scale of its own: over uniform logits, the loss is almost a "
    "constant."
)


class Model(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(predictions, targets)


def get_inputs():
    scale = torch.empty(batch_size, 1).log_normal_(0, 2)
    return [
        scale * torch.randn(batch_size, *input_shape),
        torch.randint(0, num_classes, (batch_size,)),
    ]


def get_init_inputs():
    return []
