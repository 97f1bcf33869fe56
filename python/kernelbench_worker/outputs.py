"""Tensors as the judge sees them: what a model returned, flattened, described and made plain."""
import torch

from .dtypes import CODES, MAX_DIMENSIONS, NAMES
from .errors import WorkerError

Tensor = torch.Tensor
_SUPPORTED = ", ".join(NAMES.values())
_COMPARED_AT_ONCE = 1 << 24  # elements


def flatten(result, device):
    """Lists the tensors of `result`, depth first: tuples, lists, dict values in insertion order.

    A Python number becomes a 0-dimensional tensor on `device`; None is left out. TypeError for anything else.
    """
    tensors = []
    _flatten(result, tensors, device)
    return tensors


def _flatten(result, tensors, device):
    if isinstance(result, Tensor):
        tensors.append(result)
    elif isinstance(result, (tuple, list)):
        for item in result:
            _flatten(item, tensors, device)
    elif isinstance(result, dict):
        for item in result.values():
            _flatten(item, tensors, device)
    elif isinstance(result, (bool, int, float)):
        tensors.append(torch.tensor(result, device=device.torch_device))
    elif result is not None:
        raise TypeError(f"forward returned a {type(result).__name__}, "
                        "which is neither a tensor, a number nor a tuple, list or dict of them")


def plain(tensor, device):
    """Returns `tensor` as a torch.Tensor with an address, shape and strides: dense, on `device`.

    Costs a copy where the tensor is not that already. TypeError when it cannot be had.
    """
    kind = type(tensor).__name__
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if type(tensor) is not Tensor:
        with torch._C.DisableTorchFunctionSubclass():
            tensor = tensor.as_subclass(Tensor)
    if tensor.is_meta:
        raise TypeError("forward returned a tensor on the meta device, which has no values")
    if tensor.dtype not in CODES:
        raise TypeError(f"forward returned a tensor of {tensor.dtype}; the supported types are "
                        + _SUPPORTED)
    if tensor.dim() > MAX_DIMENSIONS:
        raise TypeError(f"forward returned a tensor of {tensor.dim()} dimensions; "
                        f"at most {MAX_DIMENSIONS} are supported")
    tensor = device.bring_home(tensor)
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    try:
        has_memory = tensor.numel() == 0 or tensor.data_ptr() != 0
    except RuntimeError:  # wrapper subclasses and the like
        has_memory = False
    if not has_memory:
        raise TypeError(f"forward returned a {kind} that has no memory of its own")
    return tensor


def describe(tensor, what):
    """Returns the protocol's description of `tensor`; a `problem` error that names `what` if none."""
    if tensor.layout is not torch.strided:
        raise WorkerError("problem", f"{what} is a tensor of layout {tensor.layout}, which is not supported")
    if tensor.dtype not in CODES:
        raise WorkerError("problem", f"{what} has the dtype {tensor.dtype}, which is not supported; "
                          f"supported are {_SUPPORTED}")
    if tensor.dim() > MAX_DIMENSIONS:
        raise WorkerError("problem", f"{what} has {tensor.dim()} dimensions; at most {MAX_DIMENSIONS} are supported")
    return {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape)}


def same_bits(left, right):
    """Tells whether two tensors agree in type, shape and every bit: NaN equals itself, 0 not -0."""
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    left, right = (t.detach().contiguous().view(-1).view(torch.uint8) for t in (left, right))
    if all(t.numel() % 8 == 0 and t.storage_offset() % 8 == 0 for t in (left, right)):
        left, right = left.view(torch.int64), right.view(torch.int64)
    # In pieces: on a GPU a comparison makes a tensor as long as what it compares.
    return all(torch.equal(a, b) for a, b in zip(left.split(_COMPARED_AT_ONCE), right.split(_COMPARED_AT_ONCE)))
