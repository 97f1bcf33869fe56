"""Conv2d of (batch_size, in_channels, height, width), minimum with a constant, plus a channel bias, scaled."""
import torch
import torch.nn as nn

batch_size = 128
in_channels = 64
out_channels = 128
height = 128
width = 128
kernel_size = 3
constant_value = 0.5
bias_shape = (128, 1, 1)
scaling_factor = 2.0

SIZES = {
    "small": {
        "batch_size": 4,
        "in_channels": 16,
        "out_channels": 32,
        "height": 32,
        "width": 32,
        "bias_shape": (32, 1, 1),
    }
}


class Model(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        constant_value: float,
        bias_shape: tuple,
        scaling_factor: float,
    ):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.constant_value = constant_value
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scaling_factor = scaling_factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        x = torch.clamp(x, max=self.constant_value)
        x = x + self.bias
        return x * self.scaling_factor


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, constant_value, bias_shape, scaling_factor]
