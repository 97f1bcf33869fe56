"""Maps (batch_size, input_channels, height, width) images to (batch_size, num_classes) logits with MobileNet."""
import torch
import torch.nn as nn

batch_size = 10
input_channels = 3
height = 224
width = 224
num_classes = 1000
alpha = 1.0

SIZES = {"small": {"batch_size": 2}}


def conv_bn(in_channels: int, out_channels: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, kernel_size=3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
    )


def conv_dw(in_channels: int, out_channels: int, stride: int) -> nn.Sequential:
    """A depthwise separable convolution."""
    return nn.Sequential(
        nn.Conv2d(
            in_channels,
            in_channels,
            kernel_size=3,
            stride=stride,
            padding=1,
            groups=in_channels,
            bias=False,
        ),
        nn.BatchNorm2d(in_channels),
        nn.ReLU(),
        nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
    )


class Model(nn.Module):
    def __init__(self, num_classes: int = 1000, input_channels: int = 3, alpha: float = 1.0):
        super().__init__()
        channels = int(32 * alpha)
        layers = [conv_bn(input_channels, channels, stride=2)]
        for base_channels, stride in [
            (64, 1),
            (128, 2),
            (128, 1),
            (256, 2),
            (256, 1),
            (512, 2),
            (512, 1),
            (512, 1),
            (512, 1),
            (512, 1),
            (512, 1),
            (1024, 2),
            (1024, 1),
        ]:
            out_channels = int(base_channels * alpha)
            layers.append(conv_dw(channels, out_channels, stride))
            channels = out_channels
        self.model = nn.Sequential(*layers, nn.AvgPool2d(7))
        self.fc = nn.Linear(channels, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.flatten(self.model(x), start_dim=1)
        return self.fc(x)


def get_inputs():
    return [torch.rand(batch_size, input_channels, height, width)]


def get_init_inputs():
    return [num_classes, input_channels, alpha]
