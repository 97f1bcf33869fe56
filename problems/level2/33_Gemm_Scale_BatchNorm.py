"""Linear layer on (batch_size, in_features), BatchNorm, then scaled by feature."""
import torch
import torch.nn as nn

batch_size = 1024
in_features = 8192
out_features = 8192
scale_shape = (8192,)

SIZES = {
    "small": {"batch_size": 256, "in_features": 512, "out_features": 512, "scale_shape": (512,)}
}
ALTERED = "The scale is applied behind the normalisation, which would remove it but for its sign."
INERT = ("gemm.bias",)


class Model(nn.Module):
    def __init__(
        self,
        in_features: int,
        out_features: int,
        scale_shape: tuple,
        eps: float = 1e-5,
        momentum: float = 0.1,
    ):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features, eps=eps, momentum=momentum)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.gemm(x)
        x = self.bn(x)
        return x * self.scale


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, scale_shape]
