"""Maps (batch_size, input_channels, height, width) images to logits with ShuffleNet units, all at one resolution."""
import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 10
input_channels = 3
height = 224
width = 224
num_classes = 1000

SIZES = {"small": {"batch_size": 2, "height": 64, "width": 64}}

# Between these and the next batch norm, which cancels them, are only sums and a 1x1 convolution.
INERT = ("stage?.*.bn2.bias", "stage?.*.shortcut.1.bias")


class ChannelShuffle(nn.Module):
    """Deals the channels of each group out to all groups."""

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, C, H, W = x.shape
        x = x.view(B, self.groups, C // self.groups, H, W)
        return x.transpose(1, 2).reshape(B, C, H, W)


class ShuffleNetUnit(nn.Module):
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


class Model(nn.Module):
    def __init__(
        self,
        num_classes: int = 1000,
        groups: int = 3,
        stages_repeats: list = [3, 7, 3],
        stages_out_channels: list = [24, 240, 480, 960],
    ):
        super().__init__()
        stem, *stages = stages_out_channels
        self.conv1 = nn.Conv2d(3, stem, kernel_size=3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(stem)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.stage2 = self._make_stage(stem, stages[0], stages_repeats[0], groups)
        self.stage3 = self._make_stage(stages[0], stages[1], stages_repeats[1], groups)
        self.stage4 = self._make_stage(stages[1], stages[2], stages_repeats[2], groups)
        self.conv5 = nn.Conv2d(stages[2], 1024, kernel_size=1, bias=False)
        self.bn5 = nn.BatchNorm2d(1024)
        self.fc = nn.Linear(1024, num_classes)

    def _make_stage(
        self, in_channels: int, out_channels: int, repeats: int, groups: int
    ) -> nn.Sequential:
        units = [ShuffleNetUnit(in_channels, out_channels, groups)]
        units += [ShuffleNetUnit(out_channels, out_channels, groups) for _ in range(repeats - 1)]
        return nn.Sequential(*units)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
        x = self.stage4(self.stage3(self.stage2(x)))
        x = F.relu(self.bn5(self.conv5(x)))
        x = torch.flatten(F.adaptive_avg_pool2d(x, (1, 1)), start_dim=1)
        return self.fc(x)


def get_inputs():
    return [torch.rand(batch_size, input_channels, height, width)]


def get_init_inputs():
    return [num_classes]
