"""Calls a native candidate (include/kernelbench/kernel.h) from Python, on torch's tensors.

For profiling alone: verdicts and times are the native worker's. An exception that leaves the library ends the process.
"""
import ctypes

import torch

from .errors import WorkerError

_ABI_VERSION = 1
_ON_CPU, _ON_CUDA = 1, 2
_INT, _UINT, _FLOAT, _BFLOAT = 0, 1, 2, 4
_CODES = {torch.float64: _FLOAT, torch.float32: _FLOAT, torch.float16: _FLOAT, torch.bfloat16: _BFLOAT,
          torch.int64: _INT, torch.int32: _INT, torch.int16: _INT, torch.int8: _INT,
          torch.uint8: _UINT, torch.bool: _UINT}
_SCALAR_NONE, _SCALAR_INT, _SCALAR_FLOAT, _SCALAR_BOOL = range(4)


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _Scalar(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("position", ctypes.c_int32), ("i", ctypes.c_int64), ("f", ctypes.c_double)]


class _Call(ctypes.Structure):
    _fields_ = [("abi_version", ctypes.c_uint32), ("struct_size", ctypes.c_uint32), ("num_inputs", ctypes.c_int32),
                ("num_outputs", ctypes.c_int32), ("num_params", ctypes.c_int32), ("num_scalars", ctypes.c_int32),
                ("inputs", ctypes.POINTER(_Tensor)), ("outputs", ctypes.POINTER(_Tensor)),
                ("params", ctypes.POINTER(_Tensor)), ("param_names", ctypes.POINTER(ctypes.c_char_p)),
                ("scalars", ctypes.POINTER(_Scalar)), ("stream", ctypes.c_void_p), ("state", ctypes.c_void_p)]


class NativeModel:
    """A loaded candidate. Calling it enqueues (GPU) or makes (CPU) one call on fixed inputs and outputs."""

    def __init__(self, paths, inputs, outputs, params):
        """`inputs` as of get_inputs(), `outputs` tensors to write to, `params` tensors by their state_dict name.

        The last of `paths` is the candidate's library, the others are what it needs.
        """
        self._kept = []  # whatever the structures below point at
        self._call = _Call(abi_version=_ABI_VERSION, struct_size=ctypes.sizeof(_Call))
        names = [name.encode() for name in params]
        self._call.params, self._call.num_params = self._tensors(params.values())
        self._call.param_names = (ctypes.c_char_p * max(len(names), 1))(*names)
        tensors = [*inputs, *outputs, *params.values()]
        if any(isinstance(t, torch.Tensor) and t.is_cuda for t in tensors):
            self._stream = torch.cuda.Stream()  # does not wait for the default stream, as in the judge's worker
            self._call.stream = self._stream.cuda_stream
        library = [ctypes.CDLL(path) for path in paths][-1]
        self._run, create = getattr(library, "kb_run", None), getattr(library, "kb_create", None)
        if self._run is None:
            raise WorkerError("load", "the kernel exports no kb_run")
        if create is not None:
            state = ctypes.c_void_p()
            self._succeed("kb_create", create(ctypes.byref(self._call), ctypes.byref(state)))
            self._call.state = state
        self._call.inputs, self._call.num_inputs = self._tensors(v for v in inputs if isinstance(v, torch.Tensor))
        self._call.outputs, self._call.num_outputs = self._tensors(outputs)
        scalars = [_scalar(i, v) for i, v in enumerate(inputs) if not isinstance(v, torch.Tensor)]
        self._call.scalars = (_Scalar * max(len(scalars), 1))(*scalars)
        self._call.num_scalars = len(scalars)

    def __call__(self):
        self._succeed("kb_run", self._run(ctypes.byref(self._call)))

    def _succeed(self, what, code):
        if code != 0:
            raise WorkerError("runtime", f"{what} returned {code}")

    def _tensors(self, tensors):
        described = []
        for tensor in tensors:
            tensor = tensor.detach().contiguous()
            shape = (ctypes.c_int64 * max(tensor.dim(), 1))(*tensor.shape)
            strides = (ctypes.c_int64 * max(tensor.dim(), 1))(*tensor.stride())
            self._kept += [tensor, shape, strides]
            described.append(_Tensor(data=tensor.data_ptr(), device_type=_ON_CUDA if tensor.is_cuda else _ON_CPU,
                                     ndim=tensor.dim(), code=_CODES[tensor.dtype], bits=8 * tensor.element_size(),
                                     lanes=1, shape=shape, strides=strides))
        return (_Tensor * max(len(described), 1))(*described), len(described)


def _scalar(position, value):
    if isinstance(value, bool):
        return _Scalar(_SCALAR_BOOL, position, int(value), 0)
    if isinstance(value, int):
        return _Scalar(_SCALAR_INT, position, value, value)
    if isinstance(value, float):
        return _Scalar(_SCALAR_FLOAT, position, 0, value)
    return _Scalar(_SCALAR_NONE, position, 0, 0)
