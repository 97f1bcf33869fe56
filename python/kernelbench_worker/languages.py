"""What the languages of candidates need of their process: caches of their own, interpreters on a CPU, memory.

Nothing of a language is imported here: this is environment variables, and a hook for whoever imports CuPy.
"""
import atexit
import importlib.abc
import importlib.machinery
import os
import shutil
import sys
import tempfile

import torch

# Where compilers and autotuners keep what they have made. A sandbox has a /tmp of its own; a plain process
# must not find what an earlier candidate has left.
_CACHES = ("CUDA_TILE_CACHE_DIR", "CUPY_CACHE_DIR", "CUTE_DSL_CACHE_DIR", "HELION_CACHE_DIR", "TILELANG_CACHE_DIR",
           "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR", "TVM_FFI_CACHE_DIR")
_HELIONS_INTERPRETER, _TRITONS_INTERPRETER = "HELION_INTERPRET", "TRITON_INTERPRET"  # Helion refuses both at once


def prepare(device, language):
    """Makes the process ready for one candidate. Comes before the candidate is executed."""
    folder = tempfile.mkdtemp(prefix="kernelbench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["HOME"] = os.environ["TRITON_HOME"] = folder
    for name in _CACHES:
        os.environ[name] = os.path.join(folder, name.removesuffix("_DIR").lower())
        os.mkdir(os.environ[name])
    if device.torch_device.type == "cpu":
        os.environ[_HELIONS_INTERPRETER if language == "helion" else _TRITONS_INTERPRETER] = "1"
    else:
        sys.meta_path.insert(0, _CupyFinder())


class _CupyFinder(importlib.abc.MetaPathFinder):
    """Gives CuPy, when it is imported, the allocator of torch: its arrays then lie in the heap, too."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "cupy":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_set(module):
                execute(module)
                _use_torchs_allocator(module)

            spec.loader.exec_module = execute_and_set
        return spec


def _use_torchs_allocator(cupy):
    def allocate(size, device):
        return torch.cuda.caching_allocator_alloc(size, device, cupy.cuda.get_current_stream().ptr)

    def free(address, device):
        torch.cuda.caching_allocator_delete(address)

    cupy.cuda.set_allocator(cupy.cuda.PythonFunctionAllocator(allocate, free).malloc)
