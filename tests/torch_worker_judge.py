"""A judge for tests: drives a real torch worker as docs/protocol.md says, and judges nothing.

Needs no torch itself. Reads what the worker publishes out of the worker's memory, as the judge does.
"""
import ctypes
import json
import math
import mmap
import os
import socket
import struct
import subprocess
import sys
import time

ROOT = os.environ.get("KERNELBENCH_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHON = os.environ.get("KERNELBENCH_PYTHON") or sys.executable
PACKAGE = os.path.join(ROOT, "python", "kernelbench_worker")

DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
_FORMATS = dict(zip(DTYPES, "dfeHqihbB?"))
RECORD_WORDS = 24
MAX_CALLS = 256
PREPARE, RUN, LEAVE, LOCK = 1, 2, 3, 4
_LIBC = ctypes.CDLL(None, use_errno=True)
_FUTEX = ctypes.c_long({"x86_64": 202, "aarch64": 98}[os.uname().machine])


def item_bytes(dtype):
    return struct.calcsize(_FORMATS[dtype])


def shared_memory(size):
    """Returns a descriptor and the mapping of new memory."""
    fd = os.memfd_create("kernelbench-test", os.MFD_CLOEXEC)
    os.ftruncate(fd, size)
    return fd, mmap.mmap(fd, size)


def decode(dtype, data):
    """Returns the numbers in `data`."""
    values = memoryview(data).cast("B")
    if dtype == "float16":
        return [x for (x,) in struct.iter_unpack("e", values)]
    numbers = values.cast(_FORMATS[dtype]).tolist()
    if dtype == "bfloat16":
        return [struct.unpack("f", struct.pack("I", n << 16))[0] for n in numbers]
    return numbers


class WorkerFailed(Exception):
    """The worker answered with an error."""

    def __init__(self, error):
        super().__init__(f"{error['kind']}: {error['text']}")
        self.kind, self.text = error["kind"], error["text"]


class Output:
    """One published tensor: `dtype`, `shape`, `strides`, and its values in row-major order.

    `place` is an address in the worker, or (`relative_to` 1 or 2) an offset in the data or the heap.
    """

    def __init__(self, worker, record):
        self.place, dtype, dimensions, self.count = record[:4]
        self.relative_to = record[20]
        self.dtype = DTYPES[dtype]
        self.shape = list(record[4:4 + dimensions])
        self.strides = list(record[12:12 + dimensions])
        self._worker = worker

    def values(self):
        size = item_bytes(self.dtype)
        extent = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides))
        if 0 in self.shape:
            return []
        numbers = decode(self.dtype, self._worker.read_output(self.relative_to, self.place, extent * size))
        offsets = [0]
        for n, stride in zip(self.shape, self.strides):
            offsets = [o + i * stride for o in offsets for i in range(n)]
        return [numbers[o] for o in offsets]


class TestWorker:
    """A worker process on the CPU, with what it shares with its judge. Use as a context manager."""

    __test__ = False
    device = "cpu"
    publishes = True
    regions = "expected", "truth"

    def __init__(self, environment=None, command=(PYTHON, "-I", os.path.join(PACKAGE, "__main__.py"))):
        ours, theirs = socket.socketpair()
        self.socket = ours
        self.process = subprocess.Popen(
            [*command, "--fd", str(theirs.fileno())],
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", **(environment or {})})
        theirs.close()
        self.hello = self.receive()
        self.layout = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    # ---- control socket ----

    def send(self, request, fds=()):
        if fds:
            request = {**request, "fds": len(fds)}
        data = json.dumps(request).encode()
        header = struct.pack("<I", len(data))
        if fds:
            socket.send_fds(self.socket, [header[:1]], list(fds))
            header = header[1:]
        self.socket.sendall(header + data)

    def receive(self):
        (length,) = struct.unpack("<I", self._exactly(4))
        return json.loads(self._exactly(length))

    def request(self, op, fds=(), **fields):
        """Sends a request and returns the reply; WorkerFailed when it is an error."""
        self.send({"op": op, **fields}, fds)
        return self._checked(self.receive())

    def _checked(self, reply):
        if not reply["ok"]:
            raise WorkerFailed(reply["error"])
        return reply

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError("the worker is gone")
            data += part
        return data

    # ---- loading ----

    def load_problem(self, source, **fields):
        return self.request("load_problem", **{
            "source": source, "path": "/problems/1_Test.py", "size": "public", "set": {}, "precision": "fp32",
            "device": self.device, "weight_seed": 42, "threads": 1, **fields})["spec"]

    def load_candidate(self, source, problem, extensions=(), **fields):
        """`extensions` lists (name, fd)."""
        return self.request("load_candidate", [fd for _, fd in extensions], **{
            "source": source, "path": "/candidates/candidate.py", "problem_source": problem,
            "problem_path": "/problems/1_Test.py", "size": "public", "set": {}, "precision": "fp32",
            "device": self.device, "weight_seed": 42, "threads": 1,
            "extensions": [{"name": name, "fd": i} for i, (name, _) in enumerate(extensions)], **fields})

    def attach(self, spec, slots=4):
        """Lays out control and data for `spec`, and attaches them."""
        place = 0

        def put(description):
            nonlocal place
            item = {"dtype": description["dtype"], "shape": description["shape"], "offset": place}
            place += -(-math.prod(item["shape"]) * item_bytes(item["dtype"]) // 256) * 256
            return item

        self.outputs = len(spec["outputs"])
        control = 4096 + self.publishes * -(-8 * RECORD_WORDS * MAX_CALLS * self.outputs // 4096) * 4096
        layout = {"device": self.device, "control_size": control, "publications": 4096 * self.publishes,
                  "max_calls": MAX_CALLS, "num_outputs": self.outputs,
                  "params": [{"name": p["name"], **put(p)} for p in spec["params"]],
                  "inputs": [[put(i) if i["kind"] == "tensor" else {"value": i["value"]} for i in spec["inputs"]]
                             for _ in range(slots)]}
        floats = ("float64", "float32", "float16", "bfloat16")
        truths = [{**o, "dtype": "float64"} if o["dtype"] in floats else o for o in spec["outputs"]]
        layout["regions"] = {name: [[put(o) for o in (truths if name == "truth" else spec["outputs"])]
                                    for _ in range(slots)] for name in self.regions}
        layout["size"] = max(-(-place // 4096) * 4096, 4096)
        self.layout = layout
        control_fd, self.memory = shared_memory(control)
        self.words = memoryview(self.memory)[:4096].cast("I")
        self.go_address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        fds = [control_fd, *self.allocate(layout)]
        try:
            self.request("attach", fds, layout=layout)
        finally:
            for fd in fds:
                os.close(fd)

    # What differs between devices.

    def allocate(self, layout):
        """Makes the data (and a heap, which it adds to the layout); returns the descriptors."""
        fd, self.data = shared_memory(layout["size"])
        layout["heap_size"] = 0
        return [fd]

    def read_data(self, offset, size):
        return self.data[offset:offset + size]

    def write_data(self, offset, contents):
        self.data[offset:offset + len(contents)] = contents

    def read_output(self, relative_to, place, size):
        if relative_to != 0:
            raise ValueError(f"a tensor on the CPU is published relative to {relative_to}")
        return self.read_memory(place, size)

    def values(self, item):
        """Returns the numbers of one tensor of the layout."""
        size = math.prod(item["shape"]) * item_bytes(item["dtype"])
        return decode(item["dtype"], self.read_data(item["offset"], size))

    def region(self, name, slot):
        return [self.values(item) for item in self.layout["regions"][name][slot]]

    def inputs(self, slot):
        return [self.values(item) for item in self.layout["inputs"][slot] if "dtype" in item]

    # ---- turns ----

    def enter_turns(self, program=None, **fields):
        if program is None:
            self.request("turns", **fields)
            return
        fd = os.memfd_create("filter", os.MFD_CLOEXEC)
        os.write(fd, program)
        self.request("turns", [fd], **fields)
        os.close(fd)

    def ring(self, command, slots=(), seeds=None, limit_s=60):
        """Performs one command; returns its seconds. WorkerFailed when it fails."""
        words = self.words
        words[32], words[33], words[34] = command, len(slots), int(seeds is not None)
        for i, slot in enumerate(slots):
            words[64 + i] = slot
            if seeds is not None:
                struct.pack_into("<Q", self.memory, 1280 + 8 * i, seeds[i])
        go = words[0] + 1 & 0xFFFFFFFF
        start = time.perf_counter()
        words[0] = go
        self._futex(self.go_address, 1, 1)
        timeout = struct.pack("qq", 0, 50_000_000)
        while (done := words[16]) != go:
            self._futex(self.go_address + 64, 0, done, timeout)
            if self.process.poll() is not None:
                raise EOFError(f"the worker ended with {self.process.returncode}")
            if time.perf_counter() - start > limit_s:
                raise TimeoutError
        seconds = time.perf_counter() - start
        if words[48]:
            raise WorkerFailed(self.receive()["error"])
        return seconds

    def run(self, slots, seeds=None):
        """PREPARE, RUN; returns the published outputs, a list for each call."""
        self.ring(PREPARE)
        self.ring(RUN, slots, seeds)
        return [[self.published(call, i) for i in range(self.outputs)] for call in range(len(slots))]

    def leave(self):
        self.ring(LEAVE)
        self._checked(self.receive())

    def turn(self, slots, seeds=None):
        """One turn on its own; returns the values of the outputs, a list for each call."""
        self.enter_turns()
        values = [[output.values() for output in call] for call in self.run(slots, seeds)]
        self.leave()
        return values

    def published(self, call, output):
        start = self.layout["publications"] + 8 * RECORD_WORDS * (call * self.outputs + output)
        return Output(self, struct.unpack_from(f"<{RECORD_WORDS}q", self.memory, start))

    def read_memory(self, address, count):
        into = (ctypes.c_char * count)()
        local = (ctypes.c_size_t * 2)(ctypes.addressof(into), count)
        remote = (ctypes.c_size_t * 2)(address, count)
        read = _LIBC.process_vm_readv(self.process.pid, local, ctypes.c_ulong(1), remote, ctypes.c_ulong(1),
                                      ctypes.c_ulong(0))
        if read != count:
            raise OSError(ctypes.get_errno(), "process_vm_readv")
        return bytes(into)

    def _futex(self, address, operation, value, timeout=None):
        _LIBC.syscall(_FUTEX, ctypes.c_void_p(address), ctypes.c_int(operation), ctypes.c_uint(value), timeout)
