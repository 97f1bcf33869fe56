"""Multiplies each (M, K) matrix of an (N, M, K) tensor by the same (K, L) matrix."""
import torch
import torch.nn as nn

N = 16
M = 1024
K = 2048
L = 768

SIZES = {"small": {"N": 4, "M": 64, "K": 512, "L": 192}}


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)


def get_inputs():
    return [torch.rand(N, M, K), torch.rand(K, L)]


def get_init_inputs():
    return []
