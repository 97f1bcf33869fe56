"""Where a model runs: the one place that knows what differs between devices.

Only the CPU so far. A further device brings its own placement, generator and `synchronize`.
"""
import torch

from .errors import WorkerError


class Cpu:
    """The host: memory is the process's own, and a call is done when it returns."""

    torch_device = torch.device("cpu")

    def seed(self, seed):
        """Seeds the generator that models draw from (torch.manual_seed, without its look-around)."""
        torch.default_generator.manual_seed(seed)

    def generator_state(self):
        return torch.default_generator.get_state()


def open_device(name):
    """Returns the device called `name`; WorkerError(`unsupported`) when there is none."""
    if name == "cpu":
        return Cpu()
    raise WorkerError("unsupported", f'the torch worker does not know the device "{name}": it runs on "cpu"')
