"""Conv3d of (batch_size, in_channels, depth, height, width), divided, max-pooled, averaged, plus a bias, summed."""
import torch
import torch.nn as nn

batch_size = 128
in_channels = 8
out_channels = 16
depth = 16
height = 64
width = 64
kernel_size = (3, 3, 3)
divisor = 2.0
pool_size = (2, 2, 2)
bias_shape = (16, 1, 1, 1)
sum_dim = 1

SIZES = {
    "small": {
        "batch_size": 4,
        "in_channels": 4,
        "out_channels": 8,
        "depth": 8,
        "height": 16,
        "width": 16,
        "bias_shape": (8, 1, 1, 1),
    }
}


class Model(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple,
        divisor: float,
        pool_size: tuple,
        bias_shape: tuple,
        sum_dim: int,
    ):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.divisor = divisor
        self.max_pool = nn.MaxPool3d(pool_size)
        self.global_avg_pool = nn.AdaptiveAvgPool3d((1, 1, 1))
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.sum_dim = sum_dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        x = x / self.divisor
        x = self.max_pool(x)
        x = self.global_avg_pool(x)
        x = x + self.bias
        return torch.sum(x, dim=self.sum_dim)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, divisor, pool_size, bias_shape, sum_dim]
