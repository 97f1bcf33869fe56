"""What a model holds beside its code: parameters and buffers."""
import torch


def state_tensors(model):
    """Returns the tensors of `model.state_dict()` by name, in order, aliasing the model's own."""
    return {name: value for name, value in model.state_dict().items() if isinstance(value, torch.Tensor)}


def move_attributes(model, device):
    """Moves the tensors that modules hold as plain attributes, which `model.to()` leaves where they are.

    Scalars stay: they go with tensors of any device, and reading one on the host costs nothing.
    """
    for module in model.modules():
        for name, value in list(vars(module).items()):
            if type(value) is torch.Tensor and value.dim() > 0:
                vars(module)[name] = value.to(device)


class Buffers:
    """Remembers the state of `model` beside its parameters, and puts it back: the same objects with the same values.

    That is all buffers, and the tensors that modules hold as plain attributes when this is made (a recurrent
    model's hidden state, say). An attribute that appears later, such as a cache, is left alone.
    """

    def __init__(self, model):
        places = [(module._buffers, name, value) for module in model.modules()
                  for name, value in module._buffers.items()]
        places += [(vars(module), name, value) for module in model.modules()
                   for name, value in vars(module).items() if type(value) is torch.Tensor]
        self._saved = [(holder, name, value, value.detach().clone() if value is not None else None)
                       for holder, name, value in places]

    @torch.no_grad()
    def restore(self):
        for holder, name, value, saved in self._saved:
            holder[name] = value
            if value is not None:
                value.copy_(saved)
