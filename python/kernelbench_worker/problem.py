"""A problem file, executed: KernelBench's `Model`, `get_inputs()` and `get_init_inputs()`.

Seeds follow KernelBench: torch is seeded with the weight seed before `get_init_inputs()` and again
before the model is constructed, and with a seed of its own before `get_inputs()`. Models keep the
mode that the file puts them in.
"""
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import math
import random
import sys
import types

import torch
from torch.overrides import TorchFunctionMode

from .dtypes import PRECISIONS
from .errors import WorkerError, blame_problem, is_out_of_memory
from .state import move_attributes

PUBLIC_SIZE = "public"
SMALL_SIZE = "small"
AUTO_SIZE = "auto"  # the small size where the file has one, else the public one


def execute(source, name, path):
    """Executes `source` as the module `name`, registered in sys.modules, and returns it.

    Tracebacks, `inspect` and JIT compilers find the source text under `path`; nothing is read there.
    """
    # Without a modification time, linecache never compares the entry with a file.
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    spec = importlib.machinery.ModuleSpec(name, _TextLoader(source, path), origin=path)
    spec.has_location = True
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


class _TextLoader(importlib.abc.InspectLoader):
    def __init__(self, source, path):
        self._source, self._path = source, path

    def get_source(self, fullname):
        return self._source

    def get_code(self, fullname):
        return compile(self._source, self._path, "exec", dont_inherit=True)


class _Shapes(TorchFunctionMode):
    """Makes random tensors without their values, which on the device meta nobody sees.

    PyTorch's own way to do so for these imports sympy and 500 modules more: half a second, and several where the
    file system is slow.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func is torch.randn:
            kwargs.pop("generator", None)
            return torch.empty(*args, **kwargs)
        if func is torch.randint and ("size" in kwargs or len(args) > 1):
            return torch.empty(kwargs["size"] if "size" in kwargs else args[-1], dtype=kwargs.get("dtype") or torch.int64)
        if func in (torch.randn_like, torch.rand_like):
            return torch.empty(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype)
        return func(*args, **kwargs)


class Problem:
    """One problem file at one size and precision. Every failure is a `problem` error."""

    def __init__(self, request, device, *, source="source", path="path"):
        """Executes the file; `request` is a load request, `source` and `path` name its fields."""
        self.path = request[path]
        self.device = device
        self.weight_seed = int(request["weight_seed"])
        precision = request["precision"]
        if precision not in PRECISIONS:
            raise WorkerError("protocol", f'unknown precision "{precision}"')
        self.dtype = PRECISIONS[precision]
        with blame_problem(self.path, "the file"):
            self.module = execute(request[source], "kernelbench_problem", self.path)
        self._draw_on_device = device.torch_device.type != "cpu"
        self.sizes = self._read_sizes()
        self.size_name = request["size"]
        if self.size_name == AUTO_SIZE:
            self.size_name = SMALL_SIZE if SMALL_SIZE in self.sizes else PUBLIC_SIZE
        self._apply(self._size(self.size_name), request["set"])

    # ---- what the file gives ----------------------------------------------------------------------

    def construct(self, make_model, init_inputs):
        """Constructs `make_model` (Model or ModelNew) on the host under the weight seed, then places and casts it."""
        self.seed_all(self.weight_seed)
        with torch.no_grad():
            if isinstance(init_inputs, dict):
                model = make_model(**init_inputs)
            else:
                model = make_model(*init_inputs)
            if isinstance(model, torch.nn.Module):
                model.to(device=self.device.torch_device, dtype=self.dtype)
                move_attributes(model, self.device.torch_device)
        return model

    def model(self):
        """Constructs a fresh reference model."""
        init_inputs = self.init_inputs()
        make_model = self._function("Model", "a class Model")
        with blame_problem(self.path, "constructing Model"):
            model = self.construct(make_model, init_inputs)
        if not isinstance(model, torch.nn.Module):
            raise self._error("Model is not a torch.nn.Module")
        return model

    def init_inputs(self):
        """Returns the constructor's arguments: a list, or a dict of keyword arguments."""
        if not hasattr(self.module, "get_init_inputs"):
            return []
        self.seed_all(self.weight_seed)
        with blame_problem(self.path, "get_init_inputs()"), torch.no_grad():
            values = self.module.get_init_inputs()
            if isinstance(values, dict):
                return {name: self._place(value) for name, value in values.items()}
            if isinstance(values, (list, tuple)):
                return [self._place(value) for value in values]
        raise self._error(f"get_init_inputs() returned a {type(values).__name__}, "
                          "not a list of arguments or a dict of keyword arguments")

    def draw_inputs(self, seed):
        """Returns `get_inputs()` under `seed`, placed and cast."""
        get_inputs = self._function("get_inputs", "a function get_inputs()")
        with blame_problem(self.path, "get_inputs()"), torch.no_grad():
            values = self._draw(get_inputs, seed)
            if isinstance(values, (list, tuple)):
                return [self._place(value) for value in values]
        raise self._error(f"get_inputs() returned a {type(values).__name__}, not a list or tuple")

    def _draw(self, get_inputs, seed):
        """Draws where the inputs are to be, which is a thousand times faster than on the host and a copy."""
        if self._draw_on_device:
            try:
                self.seed_all(seed)
                with self.device.torch_device:
                    return get_inputs()
            except Exception as exception:
                if is_out_of_memory(exception):
                    raise
                self._draw_on_device = False  # it insists on the host, and does so each time
        self.seed_all(seed)
        return get_inputs()

    def input_bytes(self):
        """How many bytes get_inputs() would make, without making them; 0 where that cannot be told."""
        try:
            with torch.device("meta"), _Shapes(), torch.no_grad():
                values = self._function("get_inputs", "a function get_inputs()")()
            return sum(v.numel() * v.element_size() for v in values if isinstance(v, torch.Tensor))
        except Exception:  # it reads values, or asks for a device: then it is found out the long way
            return 0

    def refuse_what_does_not_fit(self, memory_bytes):
        """Says so at once, where drawing the inputs would end in the memory limit after minutes: not on a GPU."""
        if self.device.torch_device.type != "cpu" or not memory_bytes:
            return
        inputs = self.input_bytes()
        # Examining holds the inputs twice, and outputs.
        if 2 * inputs > memory_bytes:
            raise WorkerError("out_of_memory", f"one set of inputs takes {inputs / 1e9:.1f} GB, "
                              f"of the {memory_bytes / 1e9:.1f} GB that a worker may use")

    def call(self, model, inputs):
        """Calls the model, under no_grad."""
        with blame_problem(self.path, "Model.forward"), torch.no_grad():
            return model(*inputs)

    def check_value(self, value, what):
        """Raises unless `value` is a plain value that JSON can carry."""
        if value is None or isinstance(value, (bool, str)):
            return
        if isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                raise self._error(f"{what} is an integer of more than 64 bits")
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise self._error(f"{what} is {value}; a number has to be finite")
        else:
            raise self._error(f"{what} is a {type(value).__name__}; "
                              "an input is a tensor, None, bool, int, float or str")

    def seed_all(self, seed):
        """Seeds torch, and the generators that a file may use beside it."""
        self.device.seed(seed)
        random.seed(seed)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed(seed % 2**32)

    def _place(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        value = value.detach()
        dtype = self.dtype if self.dtype and value.is_floating_point() else value.dtype
        return value.to(device=self.device.torch_device, dtype=dtype)

    # ---- sizes and constants ----------------------------------------------------------------------

    def _read_sizes(self):
        sizes = getattr(self.module, "SIZES", {})
        if not isinstance(sizes, dict) or not all(
                isinstance(name, str) and isinstance(size, dict) for name, size in sizes.items()):
            raise self._error("SIZES must map the name of a size to a dict of constants")
        return sizes

    def _size(self, name):
        if name == PUBLIC_SIZE:
            return {}
        if name not in self.sizes:
            known = ", ".join([PUBLIC_SIZE, *self.sizes])
            raise self._error(f'there is no size "{name}"; the sizes are {known}')
        return self.sizes[name]

    def _apply(self, size, overrides):
        constants = {name: value for name, value in vars(self.module).items()
                     if not name.startswith("_") and name != "SIZES"
                     and not callable(value) and not isinstance(value, types.ModuleType)}
        for origin, values in (("SIZES", size), ("set", overrides)):
            for name, value in values.items():
                if name not in constants:
                    known = ", ".join(constants) or "none at all"
                    raise self._error(f'{origin} names the constant "{name}", which the file does not '
                                      f"define; its constants are {known}")
                if isinstance(constants[name], tuple) and isinstance(value, list):
                    value = tuple(value)  # JSON has no tuples
                setattr(self.module, name, value)

    def _function(self, name, description):
        function = getattr(self.module, name, None)
        if not callable(function):
            raise self._error(f"the file does not define {description}")
        return function

    def _error(self, text):
        return WorkerError("problem", f"{self.path.rpartition('/')[2]}: {text}")
