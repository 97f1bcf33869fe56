"""Maps images of input_shape to (batch_size, num_classes) logits with ResNet-18."""
import torch
import torch.nn as nn

batch_size = 2
num_classes = 1000
input_shape = (batch_size, 3, 224, 224)

SIZES = {"small": {"input_shape": (2, 3, 96, 96)}}


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_channels: int, channels: int, stride: int, downsample: nn.Module | None):
        super().__init__()
        self.conv1 = nn.Conv2d(
            in_channels, channels, kernel_size=3, stride=stride, padding=1, bias=False
        )
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(channels, channels, kernel_size=3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = downsample

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return self.relu(out + identity)


class Model(nn.Module):
    def __init__(self, num_classes: int = 1000):
        super().__init__()
        self.in_channels = 64
        self.conv1 = nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(64, blocks=2, stride=1)
        self.layer2 = self._make_layer(128, blocks=2, stride=2)
        self.layer3 = self._make_layer(256, blocks=2, stride=2)
        self.layer4 = self._make_layer(512, blocks=2, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * BasicBlock.expansion, num_classes)

    def _make_layer(self, channels: int, blocks: int, stride: int) -> nn.Sequential:
        width = channels * BasicBlock.expansion
        downsample = None
        if stride != 1 or self.in_channels != width:
            downsample = nn.Sequential(
                nn.Conv2d(self.in_channels, width, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(width),
            )
        layers = [BasicBlock(self.in_channels, channels, stride, downsample)]
        layers += [BasicBlock(width, channels, 1, None) for _ in range(blocks - 1)]
        self.in_channels = width
        return nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = torch.flatten(self.avgpool(x), start_dim=1)
        return self.fc(x)


def get_inputs():
    return [torch.rand(input_shape)]


def get_init_inputs():
    return [num_classes]
