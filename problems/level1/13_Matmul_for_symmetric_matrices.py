"""Multiplies two symmetric (N, N) matrices."""
import torch
import torch.nn as nn

N = 4096

SIZES = {"small": {"N": 512}}


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)


def random_symmetric():
    A = torch.rand(N, N)
    return (A + A.T) / 2


def get_inputs():
    return [random_symmetric(), random_symmetric()]


def get_init_inputs():
    return []
