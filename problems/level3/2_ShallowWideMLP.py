"""Maps (batch_size, input_size) to (batch_size, output_size) by a ReLU perceptron of two wide hidden layers."""
import torch
import torch.nn as nn

batch_size = 128
input_size = 16384
hidden_layer_sizes = [32768, 32768]
output_size = 16384

SIZES = {
    "small": {
        "batch_size": 32,
        "input_size": 512,
        "hidden_layer_sizes": [1024, 1024],
        "output_size": 512,
    },
    "24gb": {"hidden_layer_sizes": [16384, 16384]},
}


class Model(nn.Module):
    def __init__(self, input_size: int, hidden_layer_sizes: list, output_size: int):
        super().__init__()
        layers = []
        width = input_size
        for hidden_size in hidden_layer_sizes:
            layers += [nn.Linear(width, hidden_size), nn.ReLU()]
            width = hidden_size
        layers.append(nn.Linear(width, output_size))
        self.network = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network(x)


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_layer_sizes, output_size]
