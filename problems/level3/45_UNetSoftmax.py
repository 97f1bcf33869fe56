"""Maps (batch_size, in_channels, height, width) to (batch_size, out_channels, height, width) by a softmax U-Net."""
import torch
import torch.nn as nn

batch_size = 8
in_channels = 8
out_channels = 4
height = 64
width = 512
features = 64

SIZES = {"small": {"batch_size": 2, "height": 32, "width": 64, "features": 16}}

# Batch norm cancels a convolution's bias, and a softmax over the width cancels a batch norm's.
INERT = (
    "*.double_conv.0.bias",
    "*.double_conv.1.bias",
    "*.double_conv.3.bias",
    "*.double_conv.4.bias",
)


class DoubleConv(nn.Module):
    """Convolution, batch norm and softmax over the width, twice."""

    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1),
            nn.BatchNorm2d(out_channels),
            nn.Softmax(dim=-1),
            nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1),
            nn.BatchNorm2d(out_channels),
            nn.Softmax(dim=-1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.double_conv(x)


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, features: int):
        super().__init__()
        self.encoder1 = DoubleConv(in_channels, features)
        self.pool1 = nn.MaxPool2d(kernel_size=2, stride=2)
        self.encoder2 = DoubleConv(features, features * 2)
        self.pool2 = nn.MaxPool2d(kernel_size=2, stride=2)
        self.encoder3 = DoubleConv(features * 2, features * 4)
        self.pool3 = nn.MaxPool2d(kernel_size=2, stride=2)
        self.encoder4 = DoubleConv(features * 4, features * 8)
        self.pool4 = nn.MaxPool2d(kernel_size=2, stride=2)

        self.bottleneck = DoubleConv(features * 8, features * 16)

        self.upconv4 = nn.ConvTranspose2d(features * 16, features * 8, kernel_size=2, stride=2)
        self.decoder4 = DoubleConv(features * 16, features * 8)
        self.upconv3 = nn.ConvTranspose2d(features * 8, features * 4, kernel_size=2, stride=2)
        self.decoder3 = DoubleConv(features * 8, features * 4)
        self.upconv2 = nn.ConvTranspose2d(features * 4, features * 2, kernel_size=2, stride=2)
        self.decoder2 = DoubleConv(features * 4, features * 2)
        self.upconv1 = nn.ConvTranspose2d(features * 2, features, kernel_size=2, stride=2)
        self.decoder1 = DoubleConv(features * 2, features)

        self.final_conv = nn.Conv2d(features, out_channels, kernel_size=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        enc1 = self.encoder1(x)
        enc2 = self.encoder2(self.pool1(enc1))
        enc3 = self.encoder3(self.pool2(enc2))
        enc4 = self.encoder4(self.pool3(enc3))

        x = self.bottleneck(self.pool4(enc4))
        x = self.decoder4(torch.cat([self.upconv4(x), enc4], dim=1))
        x = self.decoder3(torch.cat([self.upconv3(x), enc3], dim=1))
        x = self.decoder2(torch.cat([self.upconv2(x), enc2], dim=1))
        x = self.decoder1(torch.cat([self.upconv1(x), enc1], dim=1))
        return self.final_conv(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, features]
