"""Takes the logarithm of the softmax along one dimension of a (batch_size, dim) matrix."""
import torch
import torch.nn as nn

batch_size = 4096
dim = 393216

SIZES = {
    "small": {"batch_size": 16, "dim": 98304},
    "24gb": {"batch_size": 2048},
}
ALTERED = (
    "Inputs are normal and wide: the sum of exponentials of uniform ones in [0, 1) is nearly "
    "the same in each row."
)


class Model(nn.Module):
    def __init__(self, dim: int = 1):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(x, dim=self.dim)


def get_inputs():
    return [4 * torch.randn(batch_size, dim)]


def get_init_inputs():
    return []
