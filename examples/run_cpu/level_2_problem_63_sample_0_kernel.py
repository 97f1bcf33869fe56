# Linear layer, ReLU, division by a scalar, with the division inside the matrix product.
#
# For a positive divisor relu(z) / d = relu(z / d), and addmm scales both of its terms for nothing:
# beta * bias + alpha * (x @ W^T) with alpha = beta = 1 / d. ReLU then runs in place on a temporary
# that nobody else sees. One pass over the result and one allocation instead of three of each.
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int, divisor: float):
        super().__init__()
        if divisor <= 0:
            raise ValueError("the division moves inside ReLU for a positive divisor only")
        self.linear = nn.Linear(in_features, out_features)
        self.scale = 1.0 / divisor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, bias = self.linear.weight, self.linear.bias
        z = torch.addmm(bias, x, weight.t(), beta=self.scale, alpha=self.scale)
        return z.relu_()
