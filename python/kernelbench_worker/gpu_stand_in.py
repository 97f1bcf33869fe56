"""Lets a candidate that is written for a GPU be executed where there is none, for the extensions that it builds.

Many ask torch.cuda.is_available() before they build, read the device's properties, or put a tensor on
the GPU while they are imported. Inside `GpuStandIn`, tensors meant for a GPU are made on the CPU, and
torch.cuda speaks for one idle device. Nothing that is computed so is ever judged.
"""
import contextlib
import types

import torch
from torch.overrides import TorchFunctionMode

_MULTIPROCESSORS = 132  # an H100's and H200's; whoever reads it at import needs a number


class GpuStandIn(contextlib.AbstractContextManager):
    """`architecture` as in "sm_90". `touched` tells whether a tensor or a property was asked of the device."""

    def __init__(self, architecture):
        digits = "".join(c for c in architecture if c.isdigit())
        self._capability = int(digits[:-1]), int(digits[-1])
        self.touched = False

    def __enter__(self):
        def of_the_device(value):
            def function(*_args, **_kwargs):
                self.touched = True
                return value
            return function

        major, minor = self._capability
        properties = types.SimpleNamespace(
            name="NVIDIA GPU", major=major, minor=minor, total_memory=80 << 30, multi_processor_count=_MULTIPROCESSORS,
            warp_size=32, max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536,
            shared_memory_per_block=48 << 10, shared_memory_per_multiprocessor=228 << 10,
            shared_memory_per_block_optin=227 << 10, L2_cache_size=50 << 20, is_integrated=False)
        members = {
            "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0,
            "is_bf16_supported": lambda *_args, **_kwargs: major >= 8,
            "get_device_capability": of_the_device(self._capability), "get_device_name": of_the_device(properties.name),
            "get_device_properties": of_the_device(properties), "synchronize": of_the_device(None),
            "set_device": of_the_device(None), "empty_cache": of_the_device(None), "init": of_the_device(None),
            "current_stream": of_the_device(_Idle()), "default_stream": of_the_device(_Idle()),
            "Stream": _Idle, "Event": _Idle, "stream": _Idle, "device": _Idle, "mem_get_info": of_the_device((80 << 30, 80 << 30)),
        }
        self._before = {name: getattr(torch.cuda, name) for name in members}
        for name, value in members.items():
            setattr(torch.cuda, name, value)
        self._mode = _OnTheCpu(self)
        self._mode.__enter__()
        return self

    def __exit__(self, *exception):
        self._mode.__exit__(*exception)
        for name, value in self._before.items():
            setattr(torch.cuda, name, value)


class _Idle:
    """A stream or an event on which nothing happens, or a choice of one that changes nothing."""

    cuda_stream = 0

    def __init__(self, *_args, **_kwargs):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_args, **_kwargs: None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


class _OnTheCpu(TorchFunctionMode):
    def __init__(self, owner):
        super().__init__()
        self._owner = owner

    def __torch_function__(self, func, types, args=(), kwargs=None):  # pylint: disable=redefined-outer-name
        if func is torch.Tensor.cuda:
            self._owner.touched = True
            return args[0]
        args = [self._placed(value) for value in args]
        kwargs = {name: self._placed(value) for name, value in (kwargs or {}).items() if name != "pin_memory"}
        return func(*args, **kwargs)

    def _placed(self, value):
        device = value.type if isinstance(value, torch.device) else value if isinstance(value, str) else ""
        if device.partition(":")[0] != "cuda":
            return value
        self._owner.touched = True
        return torch.device("cpu")
