"""Linear layer on (batch_size, in_features), GroupNorm, row minimum plus a bias: (1, out_features, batch_size, 1)."""
import torch
import torch.nn as nn

batch_size = 1024
in_features = 8192
out_features = 8192
num_groups = 512
bias_shape = (1, 8192, 1, 1)

SIZES = {
    "small": {
        "batch_size": 128,
        "in_features": 512,
        "out_features": 512,
        "num_groups": 32,
        "bias_shape": (1, 512, 1, 1),
    }
}


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, num_groups: int, bias_shape: tuple):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.gemm(x)
        x = self.group_norm(x)
        x = torch.min(x, dim=1, keepdim=True).values
        return x + self.bias


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, num_groups, bias_shape]
