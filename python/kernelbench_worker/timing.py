"""The worker times itself, as other tools do (`time` of docs/protocol.md).

The judge believes none of it: a candidate shares this process with the clock. The native worker
does the same (src/worker/native/timing.cpp).
"""
import gc
import statistics
from time import perf_counter

import torch

from .errors import WorkerError

# Of triton.testing.do_bench.
ESTIMATE_CALLS, WARMUP_MS, REPEAT_MS, CLEARED_BYTES = 5, 25, 100, 256 << 20
# What a call takes at least, with the clearing: bounds the repetitions.
LEAST_ESTIMATE_MS = 0.01


def time_calls(device, mode, warmup, reps, call):
    """Returns microseconds. `call` makes the next call, which may only have been enqueued when it returns.

    `host`: a call and the wait for the device, by the steady clock. `event`: the device's events around
    a call, its L2 cold. `do_bench`: Triton's procedure, which decides on warm-up and repetitions itself;
    its median. WorkerError: `unsupported` where the device has no events, `protocol` for another mode.
    """
    if mode not in _MODES:
        raise WorkerError("protocol", f'there is no way of timing called "{mode}"')
    gc.collect()
    gc.disable()
    torch.set_grad_enabled(False)
    try:
        device.synchronize()
        return _MODES[mode](device, warmup, reps, call)
    finally:
        gc.enable()


def _host(device, warmup, reps, call):
    finish = device.finisher(False)
    times = []
    for _ in range(warmup + reps):
        start = perf_counter()
        call()
        finish()
        times.append((perf_counter() - start) * 1e6)
    return times[warmup:]


def _events(device, warmup, reps, call):
    start, end = device.new_event(), device.new_event()
    clear = device.overwriter(2 * device.l2_bytes())
    times = []
    for _ in range(warmup + reps):
        clear()
        start.record()
        call()
        end.record()
        device.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return times[warmup:]


def _do_bench(device, _warmup, _reps, call):
    call()
    device.synchronize()
    start, end = device.new_event(), device.new_event()
    clear = device.overwriter(CLEARED_BYTES)
    start.record()
    for _ in range(ESTIMATE_CALLS):
        clear()
        call()
    end.record()
    device.synchronize()
    call_ms = max(start.elapsed_time(end) / ESTIMATE_CALLS, LEAST_ESTIMATE_MS)
    warmup, reps = max(1, int(WARMUP_MS / call_ms)), max(1, int(REPEAT_MS / call_ms))

    starts, ends = ([device.new_event() for _ in range(reps)] for _ in range(2))
    for _ in range(warmup):
        call()
    for start, end in zip(starts, ends):
        clear()
        start.record()
        call()
        end.record()
    device.synchronize()
    return [statistics.median(start.elapsed_time(end) for start, end in zip(starts, ends)) * 1e3]


_MODES = {"host": _host, "event": _events, "do_bench": _do_bench}
