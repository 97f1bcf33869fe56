"""Conv3d of (batch_size, in_channels, depth, height, width), LeakyReLU, plus a channel vector, clamp, GELU."""
import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 128
in_channels = 8
out_channels = 64
depth = 16
height = 64
width = 64
kernel_size = 3
sum_tensor_shape = (64, 1, 1, 1)

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 4,
        "out_channels": 16,
        "depth": 8,
        "height": 16,
        "width": 16,
        "sum_tensor_shape": (16, 1, 1, 1),
    }
}


class Model(nn.Module):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, sum_tensor_shape: tuple
    ):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.sum_tensor = nn.Parameter(torch.randn(sum_tensor_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        x = F.leaky_relu(x, negative_slope=0.2)
        x = x + self.sum_tensor
        x = torch.clamp(x, min=-1.0, max=1.0)
        return F.gelu(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, sum_tensor_shape]
