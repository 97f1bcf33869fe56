"""Linear layer on (batch_size, in_features), plus a vector, Swish, tanh, GELU, Hardtanh."""
import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 1024
in_features = 8192
out_features = 8192
add_value_shape = (8192,)

SIZES = {
    "small": {"batch_size": 256, "in_features": 512, "out_features": 512, "add_value_shape": (512,)}
}


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, add_value_shape: tuple):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.add_value = nn.Parameter(torch.randn(add_value_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.matmul(x)
        x = x + self.add_value
        x = x * torch.sigmoid(x)
        x = torch.tanh(x)
        x = F.gelu(x)
        return F.hardtanh(x, min_val=-1.0, max_val=1.0)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, add_value_shape]
