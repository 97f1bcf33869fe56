"""The three system calls that Python has no names for: futex wait and wake, seccomp."""
import ctypes
import os
import platform

_NUMBERS = {"x86_64": {"futex": 202, "seccomp": 317}, "aarch64": {"futex": 98, "seccomp": 277}}
_FUTEX_WAIT, _FUTEX_WAKE = 0, 1
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_SET_MODE_FILTER, _SECCOMP_FILTER_FLAG_TSYNC = 1, 1
_SOCK_FILTER_BYTES = 8


class _Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


class _SockFprog(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def _number(name):
    machine = platform.machine()
    if machine not in _NUMBERS:
        raise OSError(f"the worker does not know the system calls of {machine}")
    return ctypes.c_long(_NUMBERS[machine][name])


def futex_waiter(address, timeout_s):
    """Returns wait(value): sleeps while the u32 at `address` is `value`, at most `timeout_s`.

    It may return early for no reason. The interpreter lock is released meanwhile.
    """
    call = ctypes.CDLL(None).syscall
    number, operation, where = _number("futex"), ctypes.c_int(_FUTEX_WAIT), ctypes.c_void_p(address)
    seconds = _Timespec(timeout_s, 0)
    timeout = ctypes.byref(seconds)

    def wait(value):
        call(number, where, operation, ctypes.c_uint(value), timeout)

    return wait


def futex_waker(address):
    """Returns wake(): wakes whoever waits on the u32 at `address`."""
    call = ctypes.PyDLL(None).syscall  # it does not block: keep the interpreter lock
    arguments = (_number("futex"), ctypes.c_void_p(address), ctypes.c_int(_FUTEX_WAKE), ctypes.c_int(1))

    def wake():
        call(*arguments)

    return wake


def install_filter(program):
    """Installs the seccomp program (raw `struct sock_filter[]`) for all threads. OSError if refused."""
    if not program or len(program) % _SOCK_FILTER_BYTES:
        raise OSError("the seccomp program is not a whole number of instructions")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0))) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS): " + os.strerror(ctypes.get_errno()))
    instructions = ctypes.create_string_buffer(program, len(program))
    head = _SockFprog(len(program) // _SOCK_FILTER_BYTES, ctypes.addressof(instructions))
    libc.syscall.restype = ctypes.c_long
    result = libc.syscall(_number("seccomp"), ctypes.c_ulong(_SECCOMP_SET_MODE_FILTER),
                          ctypes.c_ulong(_SECCOMP_FILTER_FLAG_TSYNC), ctypes.byref(head))
    if result > 0:
        raise OSError(f"seccomp: thread {result} has a filter of its own")
    if result < 0:
        raise OSError(ctypes.get_errno(), "seccomp: " + os.strerror(ctypes.get_errno()))
