"""EfficientNet's MBConv block, with ReLU6 and without gates, on (batch_size, in_channels, height, width)."""
import torch
import torch.nn as nn

batch_size = 10
in_channels = 112
out_channels = 192
kernel_size = 5
stride = 2
expand_ratio = 6
height = 224
width = 224

SIZES = {"small": {"batch_size": 2, "height": 28, "width": 28}}


class Model(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int,
        expand_ratio: int,
    ):
        super().__init__()
        self.use_residual = stride == 1 and in_channels == out_channels
        channels = in_channels * expand_ratio
        self.expand_conv = nn.Identity()
        if expand_ratio != 1:
            self.expand_conv = nn.Sequential(
                nn.Conv2d(in_channels, channels, kernel_size=1, bias=False),
                nn.BatchNorm2d(channels),
                nn.ReLU6(),
            )
        self.depthwise_conv = nn.Sequential(
            nn.Conv2d(
                channels,
                channels,
                kernel_size=kernel_size,
                stride=stride,
                padding=kernel_size // 2,
                groups=channels,
                bias=False,
            ),
            nn.BatchNorm2d(channels),
            nn.ReLU6(),
        )
        self.project_conv = nn.Sequential(
            nn.Conv2d(channels, out_channels, kernel_size=1, bias=False),
            nn.BatchNorm2d(out_channels),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.project_conv(self.depthwise_conv(self.expand_conv(x)))
        return x + out if self.use_residual else out


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, expand_ratio]
