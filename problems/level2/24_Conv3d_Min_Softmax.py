"""Conv3d of (batch_size, in_channels, D, H, W), then the minimum over one dimension and softmax over channels."""
import torch
import torch.nn as nn

batch_size = 128
in_channels = 3
out_channels = 24
D = 24
H = 32
W = 32
kernel_size = 3
dim = 2

SIZES = {"small": {"batch_size": 4, "D": 8, "H": 16, "W": 16}}


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, dim: int):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        x = torch.min(x, dim=self.dim).values
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.rand(batch_size, in_channels, D, H, W)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, dim]
