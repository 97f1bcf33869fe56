"""Linear layer on (batch_size, in_features), reduced in steps: sum, max, mean, logsumexp twice."""
import torch
import torch.nn as nn

batch_size = 1024
in_features = 8192
out_features = 8192

SIZES = {"small": {"batch_size": 256, "in_features": 512, "out_features": 512}}
ALTERED = (
    "The features are split in five, of which each reduction takes one; a sum over them all "
    "would leave the others a single value."
)


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        x = x.view(x.size(0), 4, 4, 4, 4, -1)
        x = torch.sum(x, dim=-1)
        x = torch.max(x, dim=-1).values
        x = torch.mean(x, dim=-1)
        x = torch.logsumexp(x, dim=-1)
        return torch.logsumexp(x, dim=-1, keepdim=True)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]
