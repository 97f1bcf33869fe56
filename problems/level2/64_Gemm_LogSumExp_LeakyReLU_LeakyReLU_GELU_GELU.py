"""Linear layer on (batch_size, in_features), logsumexp over features, LeakyReLU twice, GELU twice."""
import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 1024
in_features = 8192
out_features = 8192

SIZES = {"small": {"batch_size": 256, "in_features": 512, "out_features": 512}}
ALTERED = "Inputs reach up to 10 rather than 1, for which the output would hardly depend on them."


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, bias: bool = True):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        x = torch.logsumexp(x, dim=1, keepdim=True)
        x = F.leaky_relu(x, negative_slope=0.01)
        x = F.leaky_relu(x, negative_slope=0.01)
        x = F.gelu(x)
        return F.gelu(x)


def get_inputs():
    return [10 * torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]
