"""What a model holds beside its code: parameters and buffers."""
import torch


def state_tensors(model):
    """Returns the tensors of `model.state_dict()` by name, in order, aliasing the model's own."""
    return {name: value for name, value in model.state_dict().items() if isinstance(value, torch.Tensor)}


class Buffers:
    """Remembers all buffers of `model`, and puts them back: the same objects with the same values."""

    def __init__(self, model):
        self._saved = [(module._buffers, name, buffer, buffer.clone() if buffer is not None else None)
                       for module in model.modules() for name, buffer in module._buffers.items()]

    @torch.no_grad()
    def restore(self):
        for buffers, name, buffer, value in self._saved:
            buffers[name] = buffer
            if buffer is not None:
                buffer.copy_(value)
