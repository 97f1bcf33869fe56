"""The memory shared with the judge, as tensors: input slots, output regions, parameters."""
import ctypes
import mmap
import os

import torch

from .dtypes import BY_NAME
from .errors import WorkerError


class Arena:
    """Maps the memfd `fd` (which stays the caller's) and makes the tensors of `layout` over it.

    The tensors alias the mapping, which lives as long as any of them.
    """

    def __init__(self, fd, layout):
        size = layout["size"]
        if os.fstat(fd).st_size < size:
            raise WorkerError("protocol", f"the arena has fewer than the {size} bytes of its layout")
        self.memory = mmap.mmap(fd, size)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.publications_offset = layout["publications"]
        self.max_calls = layout["max_calls"]
        # How many outputs the reference returns, and so how many are published of a call.
        self.outputs_per_call = layout["num_outputs"]
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
            return torch.empty(shape, dtype=dtype)
        flat = torch.frombuffer(self.memory, dtype=dtype, count=count, offset=item["offset"])
        return flat.view(shape)
