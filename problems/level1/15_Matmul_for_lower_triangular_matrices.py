"""Multiplies two lower triangular (M, M) matrices, which gives another."""
import torch
import torch.nn as nn

M = 4096

SIZES = {"small": {"M": 512}}


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))


def get_inputs():
    return [torch.tril(torch.rand(M, M)), torch.tril(torch.rand(M, M))]


def get_init_inputs():
    return []
