"""Transposed convolution of (batch_size, in_channels, D, H, W), softmax over channels, sigmoid."""
import torch
import torch.nn as nn

batch_size = 16
in_channels = 32
out_channels = 64
D = 16
H = 32
W = 32
kernel_size = 3
stride = 2
padding = 1
output_padding = 1

SIZES = {"small": {"batch_size": 2, "in_channels": 8, "out_channels": 16, "D": 4, "H": 8, "W": 8}}
ALTERED = "Inputs reach up to 10 rather than 1, for which the output would hardly depend on them."


class Model(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int,
        padding: int,
        output_padding: int,
        bias: bool = True,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            bias=bias,
        )
        self.softmax = nn.Softmax(dim=1)
        self.sigmoid = nn.Sigmoid()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv_transpose(x)
        x = self.softmax(x)
        return self.sigmoid(x)


def get_inputs():
    return [10 * torch.rand(batch_size, in_channels, D, H, W)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, output_padding]
