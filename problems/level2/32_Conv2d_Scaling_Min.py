"""Conv2d of (batch_size, in_channels, height, width), scaled, then the minimum over channels."""
import torch
import torch.nn as nn

batch_size = 64
in_channels = 64
out_channels = 128
height = 256
width = 256
kernel_size = 3
scale_factor = 2.0

SIZES = {
    "small": {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 32, "width": 32}
}


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, scale_factor: float):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.scale_factor = scale_factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        x = x * self.scale_factor
        return torch.min(x, dim=1, keepdim=True).values


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, scale_factor]
