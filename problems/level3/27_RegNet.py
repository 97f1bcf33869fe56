"""Maps (batch_size, input_channels, image_height, image_width) images to logits with stages of two convolutions."""
import torch
import torch.nn as nn

batch_size = 8
input_channels = 3
image_height = 224
image_width = 224
stages = 3
block_widths = [64, 128, 256]
output_classes = 10

SIZES = {"small": {"batch_size": 2, "image_height": 48, "image_width": 48}}

# Batch norm cancels a constant that is added to all that it takes the mean of.
INERT = ("feature_extractor.*.0.bias", "feature_extractor.*.3.bias")


class Model(nn.Module):
    def __init__(self, input_channels: int, stages: int, block_widths: list, output_classes: int):
        super().__init__()
        widths = [input_channels, *block_widths[:stages]]
        self.feature_extractor = nn.Sequential(
            *(self._make_stage(*pair) for pair in zip(widths, widths[1:]))
        )
        self.fc = nn.Linear(widths[-1], output_classes)

    def _make_stage(self, in_channels: int, out_channels: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(),
            nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(),
            nn.MaxPool2d(kernel_size=2, stride=2),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.feature_extractor(x)
        return self.fc(x.mean(dim=(2, 3)))


def get_inputs():
    return [torch.rand(batch_size, input_channels, image_height, image_width)]


def get_init_inputs():
    return [input_channels, stages, block_widths, output_classes]
