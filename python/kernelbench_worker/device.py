"""Where a model runs: the one place that knows what differs between devices.

A process uses one device, and nothing of CUDA is touched before a request names it: workers are
started ahead, for whatever comes.
"""
import contextlib
import ctypes
import mmap
import operator
import os
import resource

import torch

from . import cuda_driver
from .errors import WorkerError
from .heap import Heap

# What word 0 of a publication is relative to.
IN_PROCESS, IN_DATA, IN_HEAP = 0, 1, 2

_PADDING_BYTES = 1 << 20  # large, as outputs are: both are cut from the same free memory


class HostMemory:
    """Maps the memfd `fd` (which stays the caller's). Tensors over it keep the mapping alive."""

    def __init__(self, fd, size):
        if os.fstat(fd).st_size < size:
            raise WorkerError("protocol", f"the shared memory has fewer than the {size} bytes of its layout")
        self.memory = mmap.mmap(fd, size)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def tensor(self, dtype, shape, offset, count):
        return torch.frombuffer(self.memory, dtype=dtype, count=count, offset=offset).view(shape)


class DeviceMemory:
    """Maps memory of the GPU that the judge has shared as `fd`. Tensors over it keep it mapped."""

    def __init__(self, fd, size):
        self.size = size
        self.mapping = cuda_driver.Mapping(fd, size)
        self.address = self.mapping.address

    def tensor(self, dtype, shape, offset, count):
        # A storage for each tensor, as any tensor has: views of one would be aliases of each other to
        # autograd and to torch.compile.
        part = _CudaBytes(self.mapping, self.address + offset, count * dtype.itemsize)
        storage = torch.as_tensor(part, device="cuda").untyped_storage()
        return torch.empty(0, dtype=dtype, device="cuda").set_(storage, 0, shape)


class _CudaBytes:
    """What torch takes as device memory that somebody else owns."""

    def __init__(self, owner, address, size):
        self._owner = owner
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False),
                                         "strides": None, "version": 3}


class Cpu:
    """The host: memory is the process's own, and a call is done when it returns."""

    torch_device = torch.device("cpu")
    is_home = operator.attrgetter("is_cpu")  # of a tensor: is it on this device?
    map = HostMemory

    def seed(self, seed):
        """Seeds the generators that models draw from (torch.manual_seed, without its look-around)."""
        torch.default_generator.manual_seed(seed)

    def generator_state(self):
        return torch.default_generator.get_state()

    def use_heap(self, fd, size, library):
        raise WorkerError("protocol", "there is no heap on a CPU")

    def strict(self):
        """A context in which a model computes in its own precision, without shortcuts."""
        return contextlib.nullcontext()

    def bring_home(self, tensor):
        """Returns an output of a model on this device; TypeError where the contract forbids it."""
        return tensor if tensor.is_cpu else tensor.cpu()

    def locator(self, data):
        """Returns locate(tensor) → (the tensor to keep alive, what the place is relative to, the place)."""
        def locate(tensor):
            return tensor, IN_PROCESS, tensor.data_ptr()
        return locate

    def finisher(self, stub):
        """Returns what is called after the last call of a turn: finish() returns when all is done."""
        return self.synchronize

    def synchronize(self):
        pass

    def settle(self):
        """Between turns: waits for all work, and lets the allocator take back what it can.

        Where an output lies relative to the inputs, modulo a page, can cost a model some percent, and would
        be the same in all turns of a process: a block of another size each time, in front of what the turn
        allocates, makes it differ from turn to turn.
        """
        self._padding = None
        self._padding = torch.empty(_PADDING_BYTES + 64 * (os.urandom(1)[0] % 64), dtype=torch.uint8)

    def trim(self):
        """Gives memory back to the device where much is cached. Not before a turn: it would pay for it."""

    def begin_peak(self):
        """From here on peak_bytes() counts. What earlier work has left cached is given back."""
        self._peak_before = _most_resident_bytes()

    def peak_bytes(self):
        """The most memory of this device that has been in use at once, beyond what was on the CPU before."""
        return _most_resident_bytes() - self._peak_before

    def new_event(self):
        """Returns an event to time by: record(), and elapsed_time(later) in milliseconds."""
        raise WorkerError("unsupported", "a CPU has no events to time by")


class Cuda:
    """The GPU: device 0, the only one that a worker sees. Work is asynchronous."""

    torch_device = torch.device("cuda")
    is_home = operator.attrgetter("is_cuda")
    map = DeviceMemory

    def __init__(self):
        try:
            torch.cuda.init()
            torch.cuda.set_device(0)
            torch.cuda.synchronize()  # makes the context, and makes it current
        except Exception as exception:
            raise WorkerError("unsupported", f"PyTorch {torch.__version__} cannot use a GPU here: {exception}"
                              ) from exception
        self._generators = torch.default_generator, torch.cuda.default_generators[0]
        self._memory_bytes = torch.cuda.get_device_properties(0).total_memory
        self._heap = None

    def seed(self, seed):
        for generator in self._generators:
            generator.manual_seed(seed)

    def generator_state(self):
        return torch.cat([generator.get_state() for generator in self._generators])

    def use_heap(self, fd, size, library):
        """From here on what torch allocates lies in the judge's memory `fd`."""
        if self._heap is not None:
            raise WorkerError("protocol", "this worker has a heap already")
        self._heap = Heap(cuda_driver.Mapping(fd, size), size, library)

    @contextlib.contextmanager
    def strict(self):
        matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
        flags = ((matmul, "allow_tf32"), (cudnn, "allow_tf32"),
                 (matmul, "allow_fp16_reduced_precision_reduction"),
                 (matmul, "allow_bf16_reduced_precision_reduction"))
        before = [getattr(place, name) for place, name in flags]
        try:
            for place, name in flags:
                setattr(place, name, False)
            yield
        finally:
            for (place, name), value in zip(flags, before):
                setattr(place, name, value)

    def bring_home(self, tensor):
        if not tensor.is_cuda:
            raise TypeError(f"forward returned a tensor on {tensor.device}; the model runs on cuda")
        return tensor

    def locator(self, data):
        data_start, data_size, heap = data.address, data.size, self._heap
        # Without a heap, which is the reference, nobody reads where outputs are; the steps to say so are
        # a candidate's.
        home, start, size = (IN_HEAP, heap.address, heap.size) if heap else (IN_PROCESS, 0, 1 << 64)

        def locate(tensor):
            address = tensor.data_ptr()
            if 0 <= (offset := address - start) < size:
                return tensor, home, offset
            if 0 <= (offset := address - data_start) < data_size:
                return tensor, IN_DATA, offset
            if not address:  # no elements
                return tensor, IN_DATA, 0
            copy = tensor.clone()
            if not 0 <= (offset := copy.data_ptr() - start) < size:
                raise TypeError("forward returned a tensor that cannot be copied to where the judge can see it")
            return copy, IN_HEAP, offset

        return locate

    def finisher(self, stub):
        # Of the whole device: work on side streams counts.
        synchronize = torch._C._cuda_synchronize
        if not stub:
            return synchronize
        sleep = torch._C._cuda_sleep

        def launch_nothing_and_synchronize():
            sleep(0)
            synchronize()

        return launch_nothing_and_synchronize

    def synchronize(self):
        torch.cuda.synchronize()

    def settle(self):
        torch.cuda.synchronize()
        if self._heap:
            self._heap.settle()

    def trim(self):
        if torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > self._memory_bytes // 4:
            torch.cuda.empty_cache()

    def begin_peak(self):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()

    def peak_bytes(self):
        return torch.cuda.max_memory_allocated()

    def new_event(self):
        return torch.cuda.Event(enable_timing=True)

    def l2_bytes(self):
        return torch.cuda.get_device_properties(0).L2_cache_size

    def overwriter(self, size):
        """Returns clear(), which enqueues writing over a buffer of `size` bytes."""
        return torch.empty(size // 4, dtype=torch.int32, device=self.torch_device).zero_


def _most_resident_bytes():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


_KINDS = {"cpu": Cpu, "cuda": Cuda}
_opened = {}


def open_device(name):
    """Returns the device called `name`, the same one each time.

    WorkerError: `unsupported` when there is none, `protocol` when the process uses another already.
    """
    if name not in _KINDS:
        raise WorkerError("unsupported", f'the torch worker does not know the device "{name}": '
                          'it runs on "cpu" and "cuda"')
    if name not in _opened:
        if _opened:
            raise WorkerError("protocol", f'this worker runs on "{next(iter(_opened))}" already')
        _opened[name] = _KINDS[name]()
    return _opened[name]
