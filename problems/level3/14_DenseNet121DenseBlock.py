"""Dense block of num_layers 3x3 convolutions on (batch_size, num_input_features, height, width)."""
import torch
import torch.nn as nn

batch_size = 10
num_layers = 6
num_input_features = 32
growth_rate = 32
height = 224
width = 224

SIZES = {"small": {"batch_size": 2, "height": 32, "width": 32}}


class Model(nn.Module):
    def __init__(self, num_layers: int, num_input_features: int, growth_rate: int):
        super().__init__()
        self.layers = nn.ModuleList(
            self._make_layer(num_input_features + i * growth_rate, growth_rate)
            for i in range(num_layers)
        )

    def _make_layer(self, in_features: int, growth_rate: int) -> nn.Sequential:
        return nn.Sequential(
            nn.BatchNorm2d(in_features),
            nn.ReLU(),
            nn.Conv2d(in_features, growth_rate, kernel_size=3, padding=1, bias=False),
            nn.Dropout(0.0),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.cat([x, layer(x)], dim=1)
        return x


def get_inputs():
    return [torch.rand(batch_size, num_input_features, height, width)]


def get_init_inputs():
    return [num_layers, num_input_features, growth_rate]
