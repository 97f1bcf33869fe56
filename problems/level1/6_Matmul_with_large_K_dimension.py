"""Multiplies an (M, K) matrix by a (K, N) matrix; K is the largest by far."""
import torch
import torch.nn as nn

M = 256
N = 256
K = 524288

SIZES = {"small": {"M": 64, "N": 64, "K": 32768}}


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    return []
