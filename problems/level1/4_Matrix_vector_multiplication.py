"""Multiplies an (M, K) matrix by a (K, 1) column vector; K is much larger than M."""
import torch
import torch.nn as nn

M = 2048
K = 1048576

SIZES = {"small": {"M": 64, "K": 65536}}


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, 1)]


def get_init_inputs():
    return []
