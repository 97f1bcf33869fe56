"""Maps (batch_size, 3, height, width) images to logits with five MBConv blocks with squeeze-and-excitation."""
import torch
import torch.nn as nn

ALTERED = (
    "squeeze-and-excitation scales the channels; in the public problem its gates replace the image, so that"
    " all that follows is one pixel, normalised over a batch of two"
)

batch_size = 2
num_classes = 1000
height = 224
width = 224

SIZES = {"small": {"height": 128, "width": 128}}

# Between these and the next batch norm, which cancels them, is only a 1x1 convolution.
INERT = ("mbconv?.12.bias",)


class MBConv(nn.Sequential):
    """Expansion, depthwise convolution, gates of the channels, and projection, one after the other."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, expand_ratio: int):
        channels = in_channels * expand_ratio
        super().__init__(
            nn.Conv2d(in_channels, channels, kernel_size=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
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
            nn.ReLU(),
            nn.AdaptiveAvgPool2d((1, 1)),
            nn.Conv2d(channels, channels // 4, kernel_size=1, bias=False),
            nn.ReLU(),
            nn.Conv2d(channels // 4, channels, kernel_size=1, bias=False),
            nn.Sigmoid(),
            nn.Conv2d(channels, out_channels, kernel_size=1, bias=False),
            nn.BatchNorm2d(out_channels),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        *layers, project, norm = self
        for layer in layers[:6]:
            x = layer(x)
        gates = x
        for layer in layers[6:]:
            gates = layer(gates)
        return norm(project(x * gates))


class Model(nn.Module):
    def __init__(self, num_classes: int = 1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, kernel_size=3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.relu = nn.ReLU()
        self.mbconv1 = MBConv(32, 96, stride=1, expand_ratio=3)
        self.mbconv2 = MBConv(96, 144, stride=2, expand_ratio=6)
        self.mbconv3 = MBConv(144, 192, stride=2, expand_ratio=6)
        self.mbconv4 = MBConv(192, 288, stride=2, expand_ratio=6)
        self.mbconv5 = MBConv(288, 384, stride=1, expand_ratio=6)
        self.conv_final = nn.Conv2d(384, 1408, kernel_size=1, bias=False)
        self.bn_final = nn.BatchNorm2d(1408)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(1408, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.mbconv1(x)
        x = self.mbconv2(x)
        x = self.mbconv3(x)
        x = self.mbconv4(x)
        x = self.mbconv5(x)
        x = self.relu(self.bn_final(self.conv_final(x)))
        x = torch.flatten(self.avgpool(x), start_dim=1)
        return self.fc(x)


def get_inputs():
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs():
    return [num_classes]
