"""ConvTranspose2d of (batch_size, in_channels, height, width), scaled, then averaged over height and width."""
import torch
import torch.nn as nn

batch_size = 16
in_channels = 64
out_channels = 128
height = 128
width = 128
kernel_size = 3
stride = 2
padding = 1
output_padding = 1
multiplier = 0.5

SIZES = {
    "small": {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 32, "width": 32}
}
ALTERED = "Each input channel gets a random scale; averages of plain uniform inputs hardly vary."


class Model(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int,
        padding: int,
        output_padding: int,
        multiplier: float,
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
        self.multiplier = multiplier

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv_transpose(x)
        x = x * self.multiplier
        x = torch.mean(x, dim=2, keepdim=True)
        return torch.mean(x, dim=3, keepdim=True)


def get_inputs():
    scale = torch.rand(batch_size, in_channels, 1, 1)
    return [scale * torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, output_padding, multiplier]
