"""Multiplies the transpose of a (K, M) matrix by a (K, N) matrix."""
import torch
import torch.nn as nn

M = 2048
K = 8192
N = 4096

SIZES = {"small": {"M": 256, "K": 1024, "N": 512}}


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A.T, B)


def get_inputs():
    return [torch.rand(K, M), torch.rand(K, N)]


def get_init_inputs():
    return []
