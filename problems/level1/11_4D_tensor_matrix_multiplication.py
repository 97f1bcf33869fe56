"""Multiplies a (b, i, j, l) tensor by an (l, k) matrix along the last dimension."""
import torch
import torch.nn as nn

b = 8
i = 256
j = 512
l = 256
k = 768

SIZES = {"small": {"b": 2, "i": 16, "j": 32}}


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bijl,lk->bijk", A, B)


def get_inputs():
    return [torch.rand(b, i, j, l), torch.rand(l, k)]


def get_init_inputs():
    return []
