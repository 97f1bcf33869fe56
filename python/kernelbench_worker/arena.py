"""The memory shared with the judge: the control page and publications, and the data as tensors."""
import torch

from .device import HostMemory
from .dtypes import BY_NAME
from .errors import WorkerError


class Arena:
    """Maps what came with `attach`: descriptors of control, data and, where there is one, the heap.

    They stay the caller's. The tensors of the layout alias the data, which stays mapped as long as
    any of them lives.
    """

    def __init__(self, device, layout, fds):
        if len(fds) != (3 if layout["heap_size"] else 2):
            raise WorkerError("protocol", "attach takes the descriptors of control and data, and of the heap if any")
        self.device = device
        self.control = HostMemory(fds[0], layout["control_size"])
        self.data = device.map(fds[1], layout["size"])
        if layout["heap_size"]:
            device.use_heap(fds[2], layout["heap_size"], layout["heap_library"])
        self.publications_offset = layout["publications"]
        self.max_calls = layout["max_calls"]
        # How many outputs the reference returns, and so how many are published of a call.
        self.outputs_per_call = layout["num_outputs"]
        # What each record says beside the place. It outlives a turn mode: who writes records anew, which
        # takes longer than a small kernel, would do so within a turn.
        self.written = [None] * (self.max_calls * self.outputs_per_call)
        self.params = {p["name"]: self._tensor(p) for p in layout["params"]}
        # A slot's inputs, ready to be passed to a model: tensors and plain values.
        self.inputs = [[self._input(item) for item in slot] for slot in layout["inputs"]]
        self.regions = {name: [[self._tensor(item) for item in slot] for slot in slots]
                        for name, slots in layout["regions"].items()}

    def _input(self, item):
        return self._tensor(item) if "dtype" in item else item["value"]

    def _tensor(self, item):
        dtype, shape = BY_NAME[item["dtype"]], item["shape"]
        count = 1
        for extent in shape:
            count *= extent
        if count == 0:
            return torch.empty(shape, dtype=dtype, device=self.device.torch_device)
        return self.data.tensor(dtype, shape, item["offset"], count)
