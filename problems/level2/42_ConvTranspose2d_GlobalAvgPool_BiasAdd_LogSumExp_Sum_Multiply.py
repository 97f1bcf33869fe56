"""ConvTranspose2d of (batch_size, in_channels, height, width), global average, bias, channel logsumexp, times 10."""
import torch
import torch.nn as nn

batch_size = 16
in_channels = 64
out_channels = 128
height = 512
width = 512
kernel_size = 3
bias_shape = (128, 1, 1)

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
ALTERED = "Each input channel gets a random scale; averages of plain uniform inputs hardly vary."


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, bias_shape: tuple):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv_transpose(x)
        x = torch.mean(x, dim=(2, 3), keepdim=True)
        x = x + self.bias
        x = torch.logsumexp(x, dim=1, keepdim=True)
        x = torch.sum(x, dim=(2, 3))
        return x * 10.0


def get_inputs():
    scale = torch.rand(batch_size, in_channels, 1, 1)
    return [scale * torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, bias_shape]
