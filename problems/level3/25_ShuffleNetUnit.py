"""ShuffleNet unit of stride 1 with a projection shortcut on (batch_size, input_channels, height, width)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 10
input_channels = 240
out_channels = 480
groups = 3
height = 224
width = 224

SIZES = {"small": {"batch_size": 2, "height": 28, "width": 28}}

# Between it and the next batch norm, which cancels it, is only a 1x1 convolution.
INERT = ("bn2.bias",)


class ChannelShuffle(nn.Module):
    """Deals the channels of each group out to all groups."""

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, C, H, W = x.shape
        x = x.view(B, self.groups, C // self.groups, H, W)
        return x.transpose(1, 2).reshape(B, C, H, W)


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, groups: int = 3):
        super().__init__()
        channels = out_channels // 4
        self.conv1 = nn.Conv2d(in_channels, channels, kernel_size=1, groups=groups, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(
            channels, channels, kernel_size=3, padding=1, groups=channels, bias=False
        )
        self.bn2 = nn.BatchNorm2d(channels)
        self.shuffle = ChannelShuffle(groups)
        self.conv3 = nn.Conv2d(channels, out_channels, kernel_size=1, groups=groups, bias=False)
        self.bn3 = nn.BatchNorm2d(out_channels)
        self.shortcut = nn.Sequential()
        if in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=False),
                nn.BatchNorm2d(out_channels),
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.shuffle(self.bn2(self.conv2(out)))
        out = F.relu(self.bn3(self.conv3(out)))
        return out + self.shortcut(x)


def get_inputs():
    return [torch.rand(batch_size, input_channels, height, width)]


def get_init_inputs():
    return [input_channels, out_channels, groups]
