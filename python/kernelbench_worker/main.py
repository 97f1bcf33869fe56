"""The request loop: one request, one reply, until end of file or `exit`.

torch is imported before the worker says hello, so that a pool of workers takes that time off the
evaluation; what exists by then is taken out of the garbage collector's sight.
"""
import argparse
import gc
import itertools
import os
import platform

import torch

from .apart import run_apart
from .arena import Arena
from .candidate import Candidate
from .ceilings import measure_rates, occupy
from .channel import Channel, ChannelError, close_all
from .describe import describe_problem
from .device import open_device
from .doorbell import serve_turns
from .errors import WorkerError, error_of
from .lint import Lint
from .once import run_once
from .reference import MODES, Reference
from .stub import Stub
from .timing import time_calls

PROTOCOL = 1
MAX_FILTER_BYTES = 8 * 4096  # BPF_MAXINSNS instructions

# The kind of an error that does not know its own, by request.
_KINDS = {"open": "protocol", "load_problem": "problem", "load_candidate": "load", "export_params": "runtime",
          "inputs": "runtime", "expect": "runtime", "attach": "protocol", "turns": "runtime",
          "time": "runtime", "lint": "problem", "describe": "problem", "once": "problem",
          "measure": "runtime"}


def main(argv=None):
    """Serves the socket given by --fd. Returns the exit status: 0, or 2 when the framing broke."""
    parser = argparse.ArgumentParser(prog="kernelbench_worker", description="Runs a PyTorch model for kernelbench.")
    parser.add_argument("--fd", type=int, required=True, help="number of the inherited control socket")
    channel = Channel(parser.parse_args(argv).fd)
    gc.collect()
    gc.freeze()
    channel.send({"hello": "torch", "protocol": PROTOCOL, "pid": os.getpid(),
                  "torch": str(torch.__version__), "python": platform.python_version()})
    try:
        Worker(channel).serve()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the judge is gone
    except ChannelError as error:
        channel.send({"ok": False, "error": {"kind": "protocol", "text": str(error)}})
        return 2
    return 0


class Worker:
    """What one process holds: an arena, and the reference or one candidate."""

    def __init__(self, channel):
        self._channel = channel
        self._arena = None
        self._device = None
        self._reference = None
        self._subject = None  # whose model the turns call
        self._operations = {
            "open": self._open, "load_problem": self._load_problem, "attach": self._attach,
            "export_params": self._export_params, "inputs": self._inputs, "expect": self._expect,
            "load_candidate": self._load_candidate, "turns": self._turns, "time": self._time,
            "lint": self._lint, "describe": self._describe, "once": self._once,
            "measure": self._measure,
            "occupy": self._occupy}

    def serve(self):
        """Answers requests until end of file or `exit`."""
        while True:
            try:
                received = self._channel.receive()
            except ValueError as error:  # a whole frame that says nothing sensible
                self._channel.send({"ok": False, "error": error_of(WorkerError("protocol", str(error)), "")})
                continue
            if received is None or received[0].get("op") == "exit":
                return
            request, fds = received
            self._answer(request, fds)

    def _answer(self, request, fds):
        operation = request.get("op")
        try:
            if operation not in self._operations:
                raise WorkerError("protocol", f"unknown op {operation!r}")
            reply = {"ok": True, **(self._operations[operation](request, fds) or {})}
        except EOFError as error:
            if self._channel.hung_up():
                raise
            reply = {"ok": False, "error": error_of(error, _KINDS[operation])}
        except BaseException as error:  # a candidate may raise SystemExit, or anything
            reply = {"ok": False, "error": error_of(error, _KINDS.get(operation, "protocol"))}
        finally:
            close_all(fds)
        try:
            self._channel.send(reply)
        except ValueError as error:
            self._channel.send({"ok": False, "error": {"kind": "protocol", "text": str(error)}})

    # ---- operations: (request, fds) → the reply's fields. What stays open is taken out of `fds`. ----

    def _open(self, request, fds):
        self._device = open_device(request["device"])

    def _attach(self, request, fds):
        layout = request["layout"]
        self._device = open_device(layout["device"])
        self._arena = None  # first: a GPU may have no room for both
        self._arena = Arena(self._device, layout, fds)

    def _load_problem(self, request, fds):
        self._reference = self._subject = None
        self._prepare_to_load(request)
        self._reference = self._subject = Reference(request, self._device)
        return {"spec": self._reference.spec}

    def _load_candidate(self, request, fds):
        self._subject = None
        self._prepare_to_load(request)
        prebuilt = {e["name"]: fds[e["fd"]] for e in request["extensions"]}
        try:
            params = self._arena.params if self._arena else {}
            self._subject = Candidate(request, self._device, prebuilt, params)
        finally:
            fds.clear()  # a constructor or a first call may still load from them
        self._device.synchronize()
        return {"matched": self._subject.matched, "unmatched": self._subject.unmatched}

    def _prepare_to_load(self, request):
        torch.set_num_threads(request["threads"])
        self._device = open_device(request["device"])

    def _export_params(self, request, fds):
        self._need(self._reference, "a problem").export_params(self._need(self._arena, "an arena").params)
        self._device.synchronize()

    def _inputs(self, request, fds):
        reference, arena = self._need(self._reference, "a problem"), self._need(self._arena, "an arena")
        reference.draw_inputs([arena.inputs[s] for s in request["slots"]], [int(s) for s in request["seeds"]])
        self._device.synchronize()

    def _expect(self, request, fds):
        reference, arena = self._need(self._reference, "a problem"), self._need(self._arena, "an arena")
        mode, region = request["mode"], arena.regions.get(request["into"])
        if mode not in MODES:
            raise WorkerError("protocol", f'unknown mode "{mode}"')
        if region is None:
            raise WorkerError("protocol", f'the layout has no region "{request["into"]}"')
        reference.expect([arena.inputs[s] for s in request["slots"]],
                         [int(s) for s in request["call_seeds"]],
                         [region[s] for s in request["slots"]], mode)
        self._device.synchronize()

    def _turns(self, request, fds):
        subject, arena = self._need(self._subject, "a model"), self._need(self._arena, "an arena")
        program = os.pread(fds[0], MAX_FILTER_BYTES, 0) if fds else None
        stub = "stub" in request
        model = Stub(request["stub"], self._device) if stub else subject.model
        error = serve_turns(self._channel, arena, model, subject.buffers, program, stub)
        if error is not None:
            return {"ok": False, "error": error}

    def _time(self, request, fds):
        subject, arena = self._need(self._subject, "a model"), self._need(self._arena, "an arena")
        subject.buffers.restore()
        model, inputs = subject.model, itertools.cycle([arena.inputs[s] for s in request["slots"]])
        return {"times_us": time_calls(self._device, request["mode"], request["warmup"], request["reps"],
                                       lambda: model(*next(inputs)))}

    def _lint(self, request, fds):
        if request["device"] != "cpu":
            raise WorkerError("unsupported", "problems are linted on the CPU")
        device = open_device("cpu")
        return run_apart(lambda: Lint(request, device).report(), request["source"], self._channel)

    def _describe(self, request, fds):
        return run_apart(lambda: describe_problem(request), request["source"], self._channel)

    def _once(self, request, fds):
        device = open_device(request["device"])
        if request["device"] == "cpu":
            return run_apart(lambda: run_once(request, device), request["source"], self._channel)
        return run_once(request, device)

    def _measure(self, request, fds):
        torch.set_num_threads(request["threads"])
        return {"operations_per_s": measure_rates(open_device(request["device"]))}

    def _occupy(self, request, fds):
        occupy(open_device(request["device"]), request["ms"])

    def _need(self, what, name):
        if what is None:
            raise WorkerError("protocol", f"{name} has to be loaded or attached first")
        return what
