"""Multiplies an (M, K) matrix by a (K, N) matrix; no size is a round number."""
import torch
import torch.nn as nn

M = 8205
K = 2949
N = 5921

SIZES = {"small": {"M": 411, "K": 295, "N": 593}}


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    return []
