"""What a problem takes and makes at a size, and how many operations it does: without computing anything.

The model is constructed and called on torch's meta device, where tensors have shapes and no values: a model of
billions of weights takes a second and no memory. A file that reads values there is run on the CPU.
"""
import contextlib

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .device import open_device
from .errors import WorkerError, is_out_of_memory
from .outputs import describe, flatten
from .problem import Problem
from .reference import describe_load

# What moves elements and computes none.
_MOVES = ("clone", "_to_copy", "copy_", "cat", "stack", "index", "index_select", "embedding", "gather",
          "constant_pad_nd", "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "fill_",
          "zero_")


def describe_problem(request):
    """Returns `spec`, `size`, `matrix_operations`, `other_operations` and `device`, where it was found out."""
    torch.set_num_threads(request["threads"])
    try:
        return _describe_on(request, _Meta(), torch.device("meta"))
    except Exception as exception:  # it reads values: then they must exist
        try:
            return _describe_on(request, open_device("cpu"), contextlib.nullcontext())
        except WorkerError as failed:
            if is_out_of_memory(failed) or failed.kind == "out_of_memory":
                raise WorkerError("out_of_memory", f"{failed} (without memory: {exception})") from exception
            raise


def _describe_on(request, device, context):
    with context:
        problem = Problem(request, device)
        problem.refuse_what_does_not_fit(request.get("memory_bytes", 0))
        model = problem.model()
        inputs = problem.draw_inputs(problem.weight_seed)
        spec = describe_load(problem, model, inputs)
        device.seed(problem.weight_seed)
        with _Operations() as counted:
            outputs = flatten(problem.call(model, inputs), device)
    spec["outputs"] = [describe(t, f"output {i}") for i, t in enumerate(outputs)]
    return {"spec": spec, "size": problem.size_name, "device": str(device.torch_device),
            "matrix_operations": counted.matrix, "other_operations": counted.other}


class _Meta:
    """The device without memory, as far as a problem needs one."""

    torch_device = torch.device("meta")

    def seed(self, seed):
        torch.default_generator.manual_seed(seed)


class _Operations(TorchDispatchMode):
    """Counts floating-point operations: of matrix products and convolutions by torch's own formulas (a multiply-add
    is two), of all else one for each element that goes in or comes out."""

    def __init__(self):
        super().__init__()
        from torch.utils.flop_counter import flop_registry  # slow to import: only where something is counted
        self._formulas = flop_registry
        self.matrix = self.other = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.ops.aten._local_scalar_dense.default and args[0].is_meta:
            # A model that asks a value, mostly whether a mask is all ones: taken as yes.
            return {torch.bool: True}.get(args[0].dtype, 1.0 if args[0].is_floating_point() else 1)
        packet = getattr(function, "_overloadpacket", None)
        if packet not in self._formulas and hasattr(function, "decompose"):
            with self:
                decomposed = function.decompose(*args, **kwargs)
            if decomposed is not NotImplemented:
                return decomposed
        result = function(*args, **kwargs)
        if packet in self._formulas:
            self.matrix += int(self._formulas[packet](*args, **kwargs, out_val=result))
        elif not getattr(function, "is_view", False) and packet.__name__ not in _MOVES:
            into = [v.numel() for v in (*args, *kwargs.values()) if isinstance(v, torch.Tensor)]
            made = [v.numel() for v in (result if isinstance(result, (tuple, list)) else (result,))
                    if isinstance(v, torch.Tensor)]
            if into:
                self.other += max(into + made)
        return result
