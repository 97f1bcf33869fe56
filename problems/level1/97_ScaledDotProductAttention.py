"""Attention of (batch_size, num_heads, sequence_length, embedding_dimension) Q, K and V."""
import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 32
num_heads = 32
sequence_length = 512
embedding_dimension = 1024

SIZES = {
    "small": {"batch_size": 2, "num_heads": 4, "sequence_length": 64, "embedding_dimension": 128},
}
ALTERED = (
    "Inputs are normal, in the precision asked for: uniform ones get almost equal weights, and "
    "the output is almost the mean of V."
)


class Model(nn.Module):
    def forward(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(Q, K, V)


def get_inputs():
    shape = (batch_size, num_heads, sequence_length, embedding_dimension)
    return [torch.randn(shape), torch.randn(shape), torch.randn(shape)]


def get_init_inputs():
    return []
