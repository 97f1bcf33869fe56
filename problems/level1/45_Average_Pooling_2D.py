"""Averages square windows, side by side, of (batch_size, channels, height, width)."""
import torch
import torch.nn as nn

batch_size = 16
channels = 64
height = 2048
width = 2048
kernel_size = 11

SIZES = {
    "small": {"batch_size": 2, "channels": 8, "height": 256, "width": 256},
    "24gb": {"batch_size": 8},
}


class Model(nn.Module):
    def __init__(self, kernel_size: int, stride: int = None, padding: int = 0):
        super().__init__()
        self.avg_pool = nn.AvgPool2d(kernel_size, stride=stride, padding=padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.avg_pool(x)


def get_inputs():
    return [torch.rand(batch_size, channels, height, width)]


def get_init_inputs():
    return [kernel_size]
