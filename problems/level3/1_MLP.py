"""Maps (batch_size, input_size) to (batch_size, output_size) by a ReLU perceptron."""
import torch
import torch.nn as nn

batch_size = 128
input_size = 16384
layer_sizes = [16384, 16384]
output_size = 8192

SIZES = {
    "small": {
        "batch_size": 32,
        "input_size": 1024,
        "layer_sizes": [1024, 1024],
        "output_size": 512,
    }
}


class Model(nn.Module):
    def __init__(self, input_size: int, layer_sizes: list, output_size: int):
        super().__init__()
        layers = []
        width = input_size
        for layer_size in layer_sizes:
            layers += [nn.Linear(width, layer_size), nn.ReLU()]
            width = layer_size
        layers.append(nn.Linear(width, output_size))
        self.network = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network(x)


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, layer_sizes, output_size]
