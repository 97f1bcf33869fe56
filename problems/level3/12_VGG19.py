"""Maps (batch_size, 3, 224, 224) images to (batch_size, num_classes) logits with VGG-19."""
import torch
import torch.nn as nn

ALTERED = (
    "weights are drawn at He's scale; at the public problem's, PyTorch's default, hardly anything of the image"
    " reaches the logits"
)

batch_size = 10
num_classes = 1000

SIZES = {"small": {"batch_size": 1}}


class Model(nn.Module):
    def __init__(self, num_classes: int = 1000):
        super().__init__()
        layers = []
        in_channels = 3
        for channels, convolutions in zip([64, 128, 256, 512, 512], [2, 2, 4, 4, 4]):
            for _ in range(convolutions):
                layers += [nn.Conv2d(in_channels, channels, kernel_size=3, padding=1), nn.ReLU()]
                in_channels = channels
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(),
            nn.Dropout(0.0),
            nn.Linear(4096, 4096),
            nn.ReLU(),
            nn.Dropout(0.0),
            nn.Linear(4096, num_classes),
        )
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.kaiming_uniform_(module.weight, nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.features(x)
        x = torch.flatten(x, start_dim=1)
        return self.classifier(x)


def get_inputs():
    return [torch.rand(batch_size, 3, 224, 224)]


def get_init_inputs():
    return [num_classes]
