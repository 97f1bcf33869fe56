"""Linear layer on (batch_size, in_features), GroupNorm, Swish, scaled by feature, Swish."""
import torch
import torch.nn as nn

batch_size = 1024
in_features = 8192
out_features = 8192
num_groups = 256
multiply_weight_shape = (8192,)

SIZES = {
    "small": {
        "batch_size": 256,
        "in_features": 512,
        "out_features": 512,
        "num_groups": 16,
        "multiply_weight_shape": (512,),
    }
}


class Model(nn.Module):
    def __init__(
        self, in_features: int, out_features: int, num_groups: int, multiply_weight_shape: tuple
    ):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.multiply_weight = nn.Parameter(torch.randn(multiply_weight_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.gemm(x)
        x = self.group_norm(x)
        x = x * torch.sigmoid(x)
        x = x * self.multiply_weight
        return x * torch.sigmoid(x)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, num_groups, multiply_weight_shape]
