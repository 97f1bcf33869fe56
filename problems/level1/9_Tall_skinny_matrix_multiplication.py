"""Multiplies a tall (M, N) matrix by a wide (N, M) matrix."""
import torch
import torch.nn as nn

M = 32768
N = 32

SIZES = {"small": {"M": 1024}}


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)


def get_inputs():
    return [torch.rand(M, N), torch.rand(N, M)]


def get_init_inputs():
    return []
