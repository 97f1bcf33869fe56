"""Multiplies the diagonal matrix with the (N,) diagonal A by an (N, M) matrix B."""
import torch
import torch.nn as nn

M = 4096
N = 4096

SIZES = {"small": {"M": 512, "N": 512}}


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.diag(A) @ B


def get_inputs():
    return [torch.rand(N), torch.rand(N, M)]


def get_init_inputs():
    return []
