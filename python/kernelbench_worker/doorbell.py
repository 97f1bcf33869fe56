"""Turn mode: wait on the doorbell, do the one command, answer. RUN is the code that is timed.

Between `go` and `done` of a RUN there is nothing but the model's calls, what publishing needs, and
waiting for the device: everything is a local, arguments are made ahead, a record's type and shape are
written only when they change, and the garbage collector is off (PREPARE collects, untimed).

Memory order: the judge's stores come before its `go`, ours before `done`. On x86 stores are seen in
program order; elsewhere it is the futex calls, full barriers in the kernel, that order them: one of
them lies between `go` and all that is read here, and the judge reads publications only when it has
stopped this process.
"""
import gc

import torch

from . import kernel
from .dtypes import CODES, MAX_DIMENSIONS
from .errors import WorkerError, error_of
from .outputs import flatten, plain

PAGE_BYTES = 4096
# Places in the page, as u32 words.
GO, DONE, COMMAND, NUM_CALLS, RESEED, STATUS, SLOTS = 0, 16, 32, 33, 34, 48, 64
MAX_CALLS = 256
SEEDS_BYTES = 1280
PREPARE, RUN, LEAVE, LOCK = 1, 2, 3, 4
OK, FAILED = 0, 1

RECORD_WORDS = 24
PLACE, DTYPE, DIMENSIONS, COUNT, SHAPE, STRIDES, RELATIVE_TO = 0, 1, 2, 3, 4, 12, 20

HANG_UP_CHECK_S = 2


def serve_turns(channel, arena, model, buffers, filter_program, stub):
    """Serves commands until LEAVE or one that fails; then returns None or the error object.

    Replies `ok` to the `turns` request first. EOFError when the judge is gone. `stub`: the model
    computes nothing, and a turn of it still uses the device once.
    """
    device, control = arena.device, arena.control
    words = memoryview(control.memory)[:PAGE_BYTES].cast("I")
    seeds = memoryview(control.memory)[SEEDS_BYTES:SEEDS_BYTES + 8 * MAX_CALLS].cast("Q")
    slots = words[SLOTS:SLOTS + MAX_CALLS]
    wait = kernel.futex_waiter(control.address + 4 * GO, HANG_UP_CHECK_S)
    wake = kernel.futex_waker(control.address + 4 * DONE)
    seed, finish = device.seed, device.finisher(stub)
    inputs = arena.inputs
    kept = []  # published tensors, alive until the next PREPARE
    publish = _publisher(arena, kept)

    gc.collect()
    gc.freeze()  # what exists by now is not looked at again: PREPARE's collections are short
    gc.disable()
    torch.set_grad_enabled(False)
    try:
        seen = words[GO]
        channel.send({"ok": True})
        while True:
            wait(seen)
            go = words[GO]
            if go == seen:
                if channel.hung_up():
                    raise EOFError
                continue
            seen = go
            command = words[COMMAND]
            try:
                if command == RUN:
                    reseed = words[RESEED]
                    for call in range(words[NUM_CALLS]):
                        if reseed:
                            seed(seeds[call])
                        publish(call, model(*inputs[slots[call]]))
                    finish()
                elif command == PREPARE:
                    kept.clear()
                    gc.collect()
                    for call in range(words[NUM_CALLS]):  # so that the CPU's caches know the model
                        publish(call, model(*inputs[slots[call]]))
                    kept.clear()
                    buffers.restore()
                    torch.set_grad_enabled(False)  # a model may have turned them on
                    gc.disable()
                    device.settle()
                elif command == LOCK:
                    _lock(filter_program)
                elif command != LEAVE:
                    raise WorkerError("protocol", f"unknown command {command}")
            except BaseException as exception:
                words[STATUS] = FAILED
                words[DONE] = go
                wake()
                return error_of(exception, "runtime")
            words[STATUS] = OK
            words[DONE] = go
            wake()
            if command == LEAVE:
                return None
    finally:
        kept.clear()
        gc.enable()


def _lock(program):
    if program is None:
        raise WorkerError("protocol", "LOCK without a seccomp program")
    try:
        kernel.install_filter(program)
    except OSError as error:
        raise WorkerError("unsupported", str(error)) from error


def _publisher(arena, kept):
    """Returns publish(call, result): writes the records of one call, and keeps its tensors."""
    outputs = arena.outputs_per_call
    start, number = arena.publications_offset, arena.max_calls * outputs
    records = memoryview(arena.control.memory)[start:start + 8 * RECORD_WORDS * number].cast("q")
    written = arena.written
    device = arena.device
    is_home, locate = device.is_home, device.locator(arena.data)
    Tensor, strided, codes, keep = torch.Tensor, torch.strided, CODES, kept.append

    def publish(call, result):
        if type(result) is Tensor and outputs == 1:
            publish_one(call, result, 1)
            return
        tensors = flatten(result, device)
        record, count = call * outputs, len(tensors)
        for tensor in tensors[:outputs]:
            publish_one(record, tensor, count)
            record += 1
        if count == 0 and outputs:
            records[record * RECORD_WORDS + COUNT] = 0
            written[record] = None

    def publish_one(record, tensor, count):
        if (type(tensor) is not Tensor or tensor.layout is not strided or not is_home(tensor)
                or tensor.dtype not in codes or tensor.is_neg()):
            tensor = plain(tensor, device)
        tensor, relative_to, place = locate(tensor)
        keep(tensor)
        start = record * RECORD_WORDS
        records[start + PLACE] = place
        about = (tensor.dtype, tensor.shape, tensor.stride(), count, relative_to)
        if written[record] != about:
            describe(start, about)
            written[record] = about

    def describe(start, about):
        dtype, shape, strides, count, relative_to = about
        dimensions = len(shape)
        if dimensions > MAX_DIMENSIONS:
            raise TypeError(f"forward returned a tensor of {dimensions} dimensions; "
                            f"at most {MAX_DIMENSIONS} are supported")
        unused = [0] * (MAX_DIMENSIONS - dimensions)
        values = [codes[dtype], dimensions, count, *shape, *unused, *strides, *unused]
        for i, value in enumerate(values):
            records[start + DTYPE + i] = value
        records[start + RELATIVE_TO] = relative_to

    return publish
