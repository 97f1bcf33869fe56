"""ConvTranspose3d of (batch_size, in_channels, depth, height, width), BatchNorm, scaled, global average."""
import torch
import torch.nn as nn

batch_size = 16
in_channels = 64
out_channels = 128
depth = 16
height = 32
width = 32
kernel_size = 5
scale_factor = 2.0

SIZES = {
    "small": {
        "batch_size": 4,
        "in_channels": 8,
        "out_channels": 16,
        "depth": 4,
        "height": 8,
        "width": 8,
    }
}
ALTERED = (
    "The scale is applied behind the normalisation, which would remove it, and each input "
    "channel gets a random scale, for averages of plain uniform inputs hardly vary."
)
INERT = ("conv_transpose.bias",)


class Model(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        scale_factor: float,
        eps: float = 1e-5,
        momentum: float = 0.1,
    ):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size)
        self.scale_factor = scale_factor
        self.batch_norm = nn.BatchNorm3d(out_channels, eps=eps, momentum=momentum)
        self.global_avg_pool = nn.AdaptiveAvgPool3d((1, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv_transpose(x)
        x = self.batch_norm(x)
        x = x * self.scale_factor
        return self.global_avg_pool(x)


def get_inputs():
    scale = torch.rand(batch_size, in_channels, 1, 1, 1)
    return [scale * torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, scale_factor]
