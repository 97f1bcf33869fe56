"""What a turn costs without the model: one that returns ready-made outputs and computes nothing."""
import torch

from .dtypes import BY_NAME


class Stub(torch.nn.Module):
    """`outputs` are the tensors to return, each `{"dtype", "shape"}`; their values are undefined."""

    def __init__(self, outputs, device):
        super().__init__()
        tensors = tuple(torch.empty(o["shape"], dtype=BY_NAME[o["dtype"]], device=device.torch_device)
                        for o in outputs)
        self._outputs = tensors[0] if len(tensors) == 1 else tensors

    def forward(self, *inputs):
        return self._outputs
