"""What a turn costs without the model: one that returns ready-made outputs."""
import torch

from .dtypes import BY_NAME


class Stub(torch.nn.Module):
    """`outputs` are the tensors to return, each `{"dtype", "shape"}`; their values are undefined.

    It computes nothing; with `touch`, its calls copy every input and fill every output, once.
    """

    def __init__(self, outputs, device, touch=False):
        super().__init__()
        self._tensors = tuple(torch.empty(o["shape"], dtype=BY_NAME[o["dtype"]], device=device.torch_device)
                              for o in outputs)
        self._outputs = self._tensors[0] if len(self._tensors) == 1 else self._tensors
        self._touch = touch

    def forward(self, *inputs):
        if self._touch:
            for tensor in inputs:
                if isinstance(tensor, torch.Tensor):
                    tensor.clone()
            for tensor in self._tensors:
                tensor.fill_(1)
        return self._outputs
