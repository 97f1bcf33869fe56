"""ResNet's basic block with a projection shortcut on (batch_size, in_channels, height, width)."""
import torch
import torch.nn as nn

in_channels = 3
out_channels = 64
stride = 1
batch_size = 10
height = 224
width = 224

SIZES = {"small": {"batch_size": 2, "height": 32, "width": 32}}


class Model(nn.Module):
    expansion = 1

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1):
        super().__init__()
        self.conv1 = nn.Conv2d(
            in_channels, out_channels, kernel_size=3, stride=stride, padding=1, bias=False
        )
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        shortcut_channels = out_channels * self.expansion
        self.downsample = nn.Sequential(
            nn.Conv2d(in_channels, shortcut_channels, kernel_size=1, stride=stride, bias=False),
            nn.BatchNorm2d(shortcut_channels),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return self.relu(out + self.downsample(x))


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, stride]
