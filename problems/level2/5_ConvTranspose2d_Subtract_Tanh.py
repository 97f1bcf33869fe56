"""ConvTranspose2d of (batch_size, in_channels, height, width), minus a channel bias, then tanh."""
import torch
import torch.nn as nn

batch_size = 32
in_channels = 64
out_channels = 64
height = 256
width = 256
kernel_size = 4
bias_shape = (64, 1, 1)

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 16,
        "out_channels": 16,
        "height": 32,
        "width": 32,
        "bias_shape": (16, 1, 1),
    }
}


class Model(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        bias_shape: tuple,
        stride: int = 2,
        padding: int = 1,
        output_padding: int = 1,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
        )
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv_transpose(x)
        x = x - self.bias
        return torch.tanh(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, bias_shape]
