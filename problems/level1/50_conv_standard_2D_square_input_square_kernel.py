"""Applies the first layer of AlexNet, an 11x11 convolution with stride 4, to RGB images."""
import torch
import torch.nn as nn

batch_size = 256
num_classes = 1000

SIZES = {"small": {"batch_size": 2}}


class Model(nn.Module):
    def __init__(self, num_classes: int = 1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 96, kernel_size=11, stride=4, padding=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv1(x)


def get_inputs():
    return [torch.rand(batch_size, 3, 224, 224)]


def get_init_inputs():
    return [num_classes]
