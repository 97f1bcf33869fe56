"""Maps (batch_size, *input_shape) images to logits with EfficientNet-B1's first MBConv block of each stage."""
import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 10
input_shape = (3, 240, 240)
num_classes = 1000

SIZES = {"small": {"batch_size": 2, "input_shape": (3, 128, 128)}}

# Between these and the next batch norm, which cancels them, is only a 1x1 convolution.
INERT = ("mbconv?.7.bias",)


class Model(nn.Module):
    def __init__(self, num_classes: int = 1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, kernel_size=3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.mbconv1 = self._make_mbconv_block(32, 16, stride=1, expand_ratio=1)
        self.mbconv2 = self._make_mbconv_block(16, 24, stride=2, expand_ratio=6)
        self.mbconv3 = self._make_mbconv_block(24, 40, stride=2, expand_ratio=6)
        self.mbconv4 = self._make_mbconv_block(40, 80, stride=2, expand_ratio=6)
        self.mbconv5 = self._make_mbconv_block(80, 112, stride=1, expand_ratio=6)
        self.mbconv6 = self._make_mbconv_block(112, 192, stride=2, expand_ratio=6)
        self.mbconv7 = self._make_mbconv_block(192, 320, stride=1, expand_ratio=6)
        self.conv2 = nn.Conv2d(320, 1280, kernel_size=1, bias=False)
        self.bn2 = nn.BatchNorm2d(1280)
        self.fc = nn.Linear(1280, num_classes)

    def _make_mbconv_block(
        self, in_channels: int, out_channels: int, stride: int, expand_ratio: int
    ) -> nn.Sequential:
        channels = in_channels * expand_ratio
        return nn.Sequential(
            nn.Conv2d(in_channels, channels, kernel_size=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU6(),
            nn.Conv2d(
                channels,
                channels,
                kernel_size=3,
                stride=stride,
                padding=1,
                groups=channels,
                bias=False,
            ),
            nn.BatchNorm2d(channels),
            nn.ReLU6(),
            nn.Conv2d(channels, out_channels, kernel_size=1, bias=False),
            nn.BatchNorm2d(out_channels),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.mbconv1(x)
        x = self.mbconv2(x)
        x = self.mbconv3(x)
        x = self.mbconv4(x)
        x = self.mbconv5(x)
        x = self.mbconv6(x)
        x = self.mbconv7(x)
        x = F.relu(self.bn2(self.conv2(x)))
        x = torch.flatten(F.adaptive_avg_pool2d(x, (1, 1)), start_dim=1)
        return self.fc(x)


def get_inputs():
    return [torch.rand(batch_size, *input_shape)]


def get_init_inputs():
    return [num_classes]
