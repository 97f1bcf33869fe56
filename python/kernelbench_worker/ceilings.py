"""How fast PyTorch's own matrix products are on this device: a ceiling for kernels (`doctor --measure`)."""
import contextlib
import functools
from time import perf_counter

import torch

from .errors import WorkerError

# Sizes double until a precision has had its time: where other processes compete for the CPUs, a small product is slow.
FIRST_SIZE, LAST_SIZE, PRECISION_S = 256, 16384, 1.5
WARM_UP_S, CALLS_S, LEAST_CALLS = 0.1, 0.1, 3


def measure_rates(device):
    """Returns operations per second by precision; a multiply-add is two. `tf32` where the device has it."""
    kinds = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    with torch.no_grad(), device.strict():
        rates = {name: _best_rate(device, dtype) for name, dtype in kinds.items()}
        if device.torch_device.type == "cuda" and torch.cuda.get_device_capability() >= (8, 0):
            with _tf32():
                rates["tf32"] = _best_rate(device, torch.float32)
    return rates


def occupy(device, ms):
    """Leaves a GPU with one kernel of about `ms` milliseconds, and does not wait for it."""
    cycles = 1_000_000
    spin_s = min(_time_by_events(device, functools.partial(torch.cuda._sleep, cycles)) for _ in range(4))
    torch.cuda._sleep(int(cycles * ms / 1e3 / spin_s))


@contextlib.contextmanager
def _tf32():
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    matmul.allow_tf32 = True
    try:
        yield
    finally:
        matmul.allow_tf32 = before


def _best_rate(device, dtype):
    best, size, end = 0.0, FIRST_SIZE, perf_counter() + PRECISION_S
    while size <= LAST_SIZE and perf_counter() < end:
        # Random numbers: the power that a card draws, and so its clock, depends on what it multiplies.
        a, b = (torch.randn(size, size, device=device.torch_device).to(dtype) for _ in range(2))
        out = torch.empty_like(a)
        best = max(best, 2 * size ** 3 / _fastest(device, functools.partial(torch.mm, a, b, out=out)))
        if not torch.isfinite(out).all():
            raise WorkerError("runtime", f"a product of {size} x {size} matrices in {dtype} is not finite")
        size *= 2
    return best


def _fastest(device, call):
    """The seconds of the fastest call, as for a copy, when the device has been at it for a while."""
    end = perf_counter() + WARM_UP_S
    call()
    device.synchronize()
    while perf_counter() < end:
        call()
        device.synchronize()
    time = _time_by_events if device.torch_device.type == "cuda" else _time_by_clock
    times, end = [], perf_counter() + CALLS_S
    while len(times) < LEAST_CALLS or perf_counter() < end:
        times.append(time(device, call))
    return min(times)


def _time_by_clock(_device, call):
    start = perf_counter()
    call()
    return perf_counter() - start


def _time_by_events(device, call):
    start, end = device.new_event(), device.new_event()
    start.record()
    call()
    end.record()
    device.synchronize()
    return start.elapsed_time(end) / 1e3
