"""Linear layer on (batch_size, in_features), minus a scalar, multiplied by a scalar, then ReLU."""
import torch
import torch.nn as nn

batch_size = 1024
in_features = 8192
out_features = 8192
subtract_value = 2.0
multiply_value = 1.5

SIZES = {"small": {"batch_size": 256, "in_features": 512, "out_features": 512}}
ALTERED = "Inputs reach up to 10 rather than 1, for which ReLU would see negative values only."


class Model(nn.Module):
    def __init__(
        self, in_features: int, out_features: int, subtract_value: float, multiply_value: float
    ):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.subtract_value = subtract_value
        self.multiply_value = multiply_value

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        x = x - self.subtract_value
        x = x * self.multiply_value
        return torch.relu(x)


def get_inputs():
    return [10 * torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, subtract_value, multiply_value]
