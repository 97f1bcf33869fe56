"""Convolution of (batch_size, in_channels, height, width) with 1x1 kernels."""
import torch
import torch.nn as nn

batch_size = 16
in_channels = 64
out_channels = 128
width = 1024
height = 1024

SIZES = {
    "small": {"batch_size": 2, "width": 64, "height": 64},
    "24gb": {"batch_size": 8},
}


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, bias: bool = False):
        super().__init__()
        self.conv1d = nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv1d(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels]
