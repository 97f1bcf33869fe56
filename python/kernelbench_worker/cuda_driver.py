"""CUDA's driver interface, as far as torch has no names for it: mapping memory that another process shares.

To be used when torch has made its context.
"""
import ctypes

from .errors import WorkerError

_OUT_OF_MEMORY = 2
_POSIX_FILE_DESCRIPTOR = 1
_PINNED, _DEVICE, _READ_WRITE, _MINIMUM = 1, 1, 3, 0


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _AllocationProperties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handle_types", ctypes.c_int), ("location", _Location),
                ("unused", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]


class _Access(ctypes.Structure):
    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


class _Driver:
    """libcuda.so.1; its functions raise WorkerError."""

    def __init__(self):
        self._library = ctypes.CDLL("libcuda.so.1")

    def call(self, name, *arguments):
        result = getattr(self._library, name)(*arguments)
        if result != 0:
            kind = "out_of_memory" if result == _OUT_OF_MEMORY else "protocol"
            raise WorkerError(kind, f"the shared device memory cannot be mapped: {name}: {self._text(result)}")

    def try_call(self, name, *arguments):
        getattr(self._library, name)(*arguments)

    def _text(self, result):
        text = ctypes.c_char_p()
        parts = []
        for name in ("cuGetErrorName", "cuGetErrorString"):
            getattr(self._library, name)(result, ctypes.byref(text))
            parts.append((text.value or b"unknown").decode())
        return ": ".join(parts)


_driver = None


def driver():
    global _driver
    if _driver is None:
        _driver = _Driver()
    return _driver


class Mapping:
    """The allocation behind the descriptor `fd` (which stays the caller's), mapped until this is dropped."""

    def __init__(self, fd, size):
        self._driver = driver()
        call = self._driver.call
        device = _Location(_DEVICE, 0)
        granularity = ctypes.c_size_t()
        properties = _AllocationProperties(_PINNED, _POSIX_FILE_DESCRIPTOR, device)
        call("cuMemGetAllocationGranularity", ctypes.byref(granularity), ctypes.byref(properties),
             ctypes.c_int(_MINIMUM))
        mapped = ctypes.c_size_t(-(-max(size, 1) // granularity.value) * granularity.value)

        self._size, self._address, self._is_mapped = mapped, ctypes.c_uint64(), False
        handle = ctypes.c_uint64()
        call("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(fd),
             ctypes.c_int(_POSIX_FILE_DESCRIPTOR))
        try:
            zero = ctypes.c_uint64(0)
            call("cuMemAddressReserve", ctypes.byref(self._address), mapped, ctypes.c_size_t(0), zero, zero)
            call("cuMemMap", self._address, mapped, ctypes.c_size_t(0), handle, zero)
            self._is_mapped = True
            access = _Access(device, _READ_WRITE)
            call("cuMemSetAccess", self._address, mapped, ctypes.byref(access), ctypes.c_size_t(1))
        finally:
            self._driver.try_call("cuMemRelease", handle)  # the mapping holds the memory from here on

    @property
    def address(self):
        return self._address.value

    def __del__(self):
        if getattr(self, "_address", None):
            if self._is_mapped:
                self._driver.try_call("cuCtxSynchronize")
                self._driver.try_call("cuMemUnmap", self._address, self._size)
            if self._address.value:
                self._driver.try_call("cuMemAddressFree", self._address, self._size)
