"""Linear layer on (batch_size, in_features), multiplied by a scalar, then LeakyReLU."""
import torch
import torch.nn as nn

batch_size = 1024
in_features = 8192
out_features = 8192
multiplier = 2.0
negative_slope = 0.1

SIZES = {"small": {"batch_size": 256, "in_features": 512, "out_features": 512}}


class Model(nn.Module):
    def __init__(
        self,
        in_features: int,
        out_features: int,
        multiplier: float,
        negative_slope: float,
    ):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.multiplier = multiplier
        self.leaky_relu = nn.LeakyReLU(negative_slope)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.gemm(x)
        x = x * self.multiplier
        return self.leaky_relu(x)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, multiplier, negative_slope]
