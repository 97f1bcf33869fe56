"""Multiplies two (N, N) matrices."""
import torch
import torch.nn as nn

N = 4096

SIZES = {"small": {"N": 512}}


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)


def get_inputs():
    return [torch.rand(N, N), torch.rand(N, N)]


def get_init_inputs():
    return []
