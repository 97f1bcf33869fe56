"""Multiplies an (M, K) matrix by the transpose of an (N, K) matrix."""
import torch
import torch.nn as nn

M = 2048
K = 8192
N = 4096

SIZES = {"small": {"M": 256, "K": 1024, "N": 512}}


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B.T)


def get_inputs():
    return [torch.rand(M, K), torch.rand(N, K)]


def get_init_inputs():
    return []
