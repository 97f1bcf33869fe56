"""Maps (batch_size, 3, height, width) images to logits with the layers of MobileNetV2, without its shortcuts."""
import torch
import torch.nn as nn

batch_size = 10
num_classes = 1000
height = 224
width = 224

SIZES = {"small": {"batch_size": 2, "height": 128, "width": 128}}

# Between these and the next batch norm, which cancels them, is only a 1x1 convolution.
INERT = ("features.3.4.bias", "features.*.7.bias")


def inverted_residual(
    in_channels: int, out_channels: int, stride: int, expand_ratio: int
) -> nn.Sequential:
    """The layers of an inverted residual block, which its shortcut would bypass."""
    channels = in_channels * expand_ratio
    layers = []
    if expand_ratio != 1:
        layers += [
            nn.Conv2d(in_channels, channels, kernel_size=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU6(),
        ]
    layers += [
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
    ]
    return nn.Sequential(*layers)


class Model(nn.Module):
    def __init__(self, num_classes: int = 1000):
        super().__init__()
        channels = 32
        last_channels = 1280
        layers = [
            nn.Conv2d(3, channels, kernel_size=3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU6(),
        ]
        for expand_ratio, out_channels, blocks, stride in [
            (1, 16, 1, 1),
            (6, 24, 2, 2),
            (6, 32, 3, 2),
            (6, 64, 4, 2),
            (6, 96, 3, 1),
            (6, 160, 3, 2),
            (6, 320, 1, 1),
        ]:
            for i in range(blocks):
                block_stride = stride if i == 0 else 1
                layers.append(
                    inverted_residual(channels, out_channels, block_stride, expand_ratio)
                )
                channels = out_channels
        layers += [
            nn.Conv2d(channels, last_channels, kernel_size=1, bias=False),
            nn.BatchNorm2d(last_channels),
            nn.ReLU6(),
            nn.AdaptiveAvgPool2d((1, 1)),
        ]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.0), nn.Linear(last_channels, num_classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.flatten(self.features(x), start_dim=1)
        return self.classifier(x)


def get_inputs():
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs():
    return [num_classes]
