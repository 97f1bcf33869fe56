"""SqueezeNet's fire module on (batch_size, num_input_features, height, width): squeeze, expand twice, concatenate."""
import torch
import torch.nn as nn

batch_size = 128
num_input_features = 3
height = 256
width = 256
squeeze_channels = 6
expand1x1_channels = 64
expand3x3_channels = 64

SIZES = {
    "small": {"batch_size": 2, "height": 32, "width": 32},
    "24gb": {"batch_size": 32},
}


class Model(nn.Module):
    def __init__(
        self,
        in_channels: int,
        squeeze_channels: int,
        expand1x1_channels: int,
        expand3x3_channels: int,
    ):
        super().__init__()
        self.squeeze = nn.Conv2d(in_channels, squeeze_channels, kernel_size=1)
        self.squeeze_activation = nn.ReLU()
        self.expand1x1 = nn.Conv2d(squeeze_channels, expand1x1_channels, kernel_size=1)
        self.expand1x1_activation = nn.ReLU()
        self.expand3x3 = nn.Conv2d(squeeze_channels, expand3x3_channels, kernel_size=3, padding=1)
        self.expand3x3_activation = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.squeeze_activation(self.squeeze(x))
        expanded1x1 = self.expand1x1_activation(self.expand1x1(x))
        expanded3x3 = self.expand3x3_activation(self.expand3x3(x))
        return torch.cat([expanded1x1, expanded3x3], dim=1)


def get_inputs():
    return [torch.rand(batch_size, num_input_features, height, width)]


def get_init_inputs():
    return [num_input_features, squeeze_channels, expand1x1_channels, expand3x3_channels]
