"""Convolution of (batch_size, in_channels, height, width), BatchNorm, scaled."""
import torch
import torch.nn as nn

batch_size = 128
in_channels = 8
out_channels = 64
height = 128
width = 128
kernel_size = 3
scaling_factor = 2.0

SIZES = {"small": {"batch_size": 4, "out_channels": 32, "height": 32, "width": 32}}
INERT = ("conv.bias",)


class Model(nn.Module):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, scaling_factor: float
    ):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bn = nn.BatchNorm2d(out_channels)
        self.scaling_factor = scaling_factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        x = self.bn(x)
        return x * self.scaling_factor


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, scaling_factor]
