"""Linear layer on (batch_size, in_features), plus a bias, Hardtanh, Mish, GroupNorm."""
import torch
import torch.nn as nn

batch_size = 1024
in_features = 8192
out_features = 8192
bias_shape = (8192,)
num_groups = 256

SIZES = {
    "small": {
        "batch_size": 256,
        "in_features": 512,
        "out_features": 512,
        "num_groups": 16,
        "bias_shape": (512,),
    }
}


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, bias_shape: tuple, num_groups: int):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.hardtanh = nn.Hardtanh()
        self.mish = nn.Mish()
        self.groupnorm = nn.GroupNorm(num_groups, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.gemm(x)
        x = x + self.bias
        x = self.hardtanh(x)
        x = self.mish(x)
        return self.groupnorm(x)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, bias_shape, num_groups]
