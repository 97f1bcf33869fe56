"""Linear layer on (batch_size, in_features), then dropout and softmax over features."""
import torch
import torch.nn as nn

batch_size = 128
in_features = 16384
out_features = 16384
dropout_p = 0.2

SIZES = {"small": {"in_features": 512, "out_features": 512}}
ALTERED = "Inputs reach up to 10 rather than 1, for which every output would be about 1e-4."


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, dropout_p: float):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.matmul(x)
        x = self.dropout(x)
        return torch.softmax(x, dim=1)


def get_inputs():
    return [10 * torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, dropout_p]
