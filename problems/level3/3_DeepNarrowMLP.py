"""Maps (batch_size, input_size) to (batch_size, output_size) by a ReLU perceptron of 16 narrow hidden layers."""
import torch
import torch.nn as nn

ALTERED = (
    "weights are drawn at He's scale; at the public problem's, PyTorch's default, hardly anything of the input"
    " reaches the output"
)

batch_size = 1024
input_size = 8192
hidden_layer_sizes = [1024] * 16
output_size = 8192

SIZES = {
    "small": {
        "batch_size": 32,
        "input_size": 512,
        "hidden_layer_sizes": [128] * 16,
        "output_size": 512,
    }
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
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.kaiming_uniform_(module.weight, nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network(x)


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, hidden_layer_sizes, output_size]
