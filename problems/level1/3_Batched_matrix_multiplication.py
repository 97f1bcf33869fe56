"""Multiplies batch_size pairs of (m, k) and (k, n) matrices."""
import torch
import torch.nn as nn

batch_size = 128
m = 512
k = 1024
n = 2048

SIZES = {"small": {"batch_size": 8, "m": 64, "k": 256, "n": 512}}


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.bmm(A, B)


def get_inputs():
    return [torch.rand(batch_size, m, k), torch.rand(batch_size, k, n)]


def get_init_inputs():
    return []
