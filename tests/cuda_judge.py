"""The judge's side of a GPU, for tests: memory that workers map, through CUDA's driver interface and without torch."""
import ctypes
import os

from torch_worker_judge import ROOT, TestWorker

BUILD = os.path.dirname(os.environ.get("KERNELBENCH_BINARY") or os.path.join(ROOT, "build", "release", "kernelbench"))
HEAP_LIBRARY = os.path.join(BUILD, "libkernelbench-heap.so")
_PINNED, _POSIX_FILE_DESCRIPTOR, _ON_DEVICE, _READ_WRITE, _MINIMUM = 1, 1, 1, 3, 0


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", _Location),
                ("windows", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]


class _Access(ctypes.Structure):
    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


_cuda = None


def _call(name, *arguments):
    global _cuda
    if _cuda is None:
        _cuda = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        _call("cuInit", 0)
        _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        _call("cuCtxSetCurrent", context)
    result = getattr(_cuda, name)(*arguments)
    if result != 0:
        raise OSError(f"{name} returned {result}")


def has_gpu():
    try:
        _call("cuCtxSynchronize")
        return True
    except OSError:
        return False


def free_bytes():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    _call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value


class Memory:
    """Device memory, zeroed, with a descriptor for a worker. close() gives it back."""

    def __init__(self, size):
        location, zero = _Location(_ON_DEVICE, 0), ctypes.c_uint64(0)
        properties = _Properties(_PINNED, _POSIX_FILE_DESCRIPTOR, location)
        granularity, handle, fd = ctypes.c_size_t(), ctypes.c_uint64(), ctypes.c_int()
        _call("cuCtxSynchronize")
        _call("cuMemGetAllocationGranularity", ctypes.byref(granularity), ctypes.byref(properties), _MINIMUM)
        self._size = ctypes.c_size_t(-(-size // granularity.value) * granularity.value)
        self.address = ctypes.c_uint64()
        _call("cuMemCreate", ctypes.byref(handle), self._size, ctypes.byref(properties), zero)
        _call("cuMemExportToShareableHandle", ctypes.byref(fd), handle, _POSIX_FILE_DESCRIPTOR, zero)
        _call("cuMemAddressReserve", ctypes.byref(self.address), self._size, ctypes.c_size_t(0), zero, zero)
        _call("cuMemMap", self.address, self._size, ctypes.c_size_t(0), handle, zero)
        _call("cuMemSetAccess", self.address, self._size, ctypes.byref(_Access(location, _READ_WRITE)),
              ctypes.c_size_t(1))
        _call("cuMemRelease", handle)
        _call("cuMemsetD8_v2", self.address, ctypes.c_ubyte(0), self._size)
        _call("cuCtxSynchronize")
        self.fd = fd.value

    def read(self, offset, size):
        if not 0 <= offset <= offset + size <= self._size.value:
            raise ValueError(f"{size} bytes at {offset} are outside")
        into = ctypes.create_string_buffer(size)
        _call("cuMemcpyDtoH_v2", into, ctypes.c_uint64(self.address.value + offset), ctypes.c_size_t(size))
        return into.raw

    def write(self, offset, contents):
        data = bytes(contents)
        _call("cuMemcpyHtoD_v2", ctypes.c_uint64(self.address.value + offset), data, ctypes.c_size_t(len(data)))

    def close(self):
        if self.address.value:
            _call("cuMemUnmap", self.address, self._size)
            _call("cuMemAddressFree", self.address, self._size)
            self.address.value = 0


class OnGpu:
    """A worker on the GPU: to be inherited from before TestWorker. `heap_bytes` > 0 attaches a heap."""

    device = "cuda"
    heap_bytes = 0
    heap = memory_on_gpu = None

    def __exit__(self, *arguments):
        super().__exit__(*arguments)
        self._close()

    def allocate(self, layout):
        self._close()
        self.memory_on_gpu = Memory(layout["size"])
        fds = [self.memory_on_gpu.fd]
        layout["heap_size"] = self.heap_bytes
        if self.heap_bytes:
            self.heap = Memory(self.heap_bytes)
            fds.append(self.heap.fd)
            layout["heap_library"] = HEAP_LIBRARY
        return fds

    def _close(self):
        for memory in (self.memory_on_gpu, self.heap):
            if memory:
                memory.close()
        self.memory_on_gpu = self.heap = None

    def read_data(self, offset, size):
        return self.memory_on_gpu.read(offset, size)

    def write_data(self, offset, contents):
        self.memory_on_gpu.write(offset, contents)

    def read_output(self, relative_to, place, size):
        return {1: self.memory_on_gpu, 2: self.heap}[relative_to].read(place, size)


class GpuReference(OnGpu, TestWorker):
    __test__ = False


class GpuCandidate(OnGpu, TestWorker):
    __test__ = False
    heap_bytes = 512 << 20
    regions = ()
