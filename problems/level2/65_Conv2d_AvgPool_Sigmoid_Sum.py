"""Conv2d of (batch_size, in_channels, height, width), average pooling, sigmoid, sum by sample."""
import torch
import torch.nn as nn

batch_size = 128
in_channels = 8
out_channels = 64
height = 384
width = 384
kernel_size = 3
pool_kernel_size = 4

SIZES = {"small": {"batch_size": 4, "out_channels": 16, "height": 32, "width": 32}}
ALTERED = "Each input channel gets a random scale; averages of plain uniform inputs hardly vary."


class Model(nn.Module):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, pool_kernel_size: int
    ):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.avg_pool = nn.AvgPool2d(pool_kernel_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        x = self.avg_pool(x)
        x = torch.sigmoid(x)
        return torch.sum(x, dim=(1, 2, 3))


def get_inputs():
    scale = torch.rand(batch_size, in_channels, 1, 1)
    return [scale * torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, pool_kernel_size]
