"""A judge that stays: one process for many evaluations, so that PyTorch is imported, the device open and the last
problem's reference loaded when a kernel comes. Candidates share nothing of it: each has a sandbox of its own, used
once."""
from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import hashlib
import itertools
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from . import command
from .binary import find_binary
from .command import Result
from .evaluation import TIMEOUT_S, Given, finished
from .service import Reply, Service
from .source import SUFFIXES, candidate_file, is_text, problem_file

Future = concurrent.futures.Future[Result]


class Judge:
    """Judges as evaluate() does, with the options given here for all evaluations:

        with Judge(size="small") as judge:
            result = judge.evaluate("level1/19", source_text)

    devices: such as ["cuda:0", "cuda:1"], one judge each, or ["cpu"]; by default one GPU where there is one.
    jobs: compilations at a time beside GPUs; by default as many as the program thinks fit.
    timeout: of each evaluation, as for evaluate(); what waits for others meanwhile does not count. The process is
        killed when none has had a result for that long, plus the time that a compilation may take: those under way
        become infrastructure_errors, and the next one starts another process.
    Everything else is as for evaluate(). Raises ValueError for options with which nothing can be judged, and NotFound.

    Threads may use one Judge at the same time: what they hand in waits its turn, so that nothing is timed beside
    anything else on a device. Evaluations of one problem follow each other as far as that is fair to the others. Close
    it, or use it in a `with` block: that ends all processes, and what is under way becomes an infrastructure_error.
    They end with the process that made the Judge, too; its forks cannot use it.
    """

    def __init__(self, *, devices: Sequence[str] | None = None, size: str | None = None, jobs: int | None = None,
                 timeout: float = TIMEOUT_S, **options: Any):
        flags = command.options(timeout, ",".join(devices or []) or None, size, None, options)
        if jobs is not None:
            flags.append(f"--jobs={jobs}")
        self._command = [find_binary(), "serve", "--end-with-parent", *flags]
        compilation = options.get("compile_timeout") or min(command.LIMITS["compile_timeout"], timeout / 2)
        self._stall = timeout + float(compilation)
        self._process = os.getpid()
        self._numbers = itertools.count()
        self._folder = Path(tempfile.mkdtemp(prefix="kernelbench-judge-"))
        self._lock = threading.Lock()  # of the services, and of the problems' files
        self._services: list[Service] = []  # one, as soon as it has started
        self._end = weakref.finalize(self, end, self._services, self._folder, self._process)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def submit(self, problem: Given, candidate: Given, *, backend: str | None = None) -> Future:
        """Hands one evaluation in. Returns at once, with a future of what evaluate() would return or raise. Files are
        read when it is judged, not now. The future's callbacks must not wait for another evaluation."""
        number = next(self._numbers)
        place = self._folder / str(number)
        with self._open():
            place.mkdir()
        try:
            request = {"problem": self._problem(problem),
                       "candidate": os.path.abspath(candidate_file(candidate, backend, place))}
            if backend is not None and backend not in SUFFIXES:
                request["backend"] = backend
            future: Future = concurrent.futures.Future()
            future.set_running_or_notify_cancel()

            def take(reply: Reply) -> None:
                shutil.rmtree(place, ignore_errors=True)
                error = reply.get("error", "")
                if error and not error.startswith("internal error"):
                    future.set_exception(ValueError(error))
                    return
                if error:
                    reply = command.infrastructure_error(error)
                if not is_text(problem) and request["problem"] != os.fspath(problem):
                    reply["problem"] = ""  # it is as the caller calls it
                future.set_result(finished(reply, problem, candidate))

            with self._open():
                while not self._services[-1].submit(number, request, take):
                    self._start()
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        return future

    def evaluate(self, problem: Given, candidate: Given, *, backend: str | None = None) -> Result:
        """evaluate() of this package, without its options; but what a problem does that cannot be run is an
        infrastructure_error here."""
        if self._services and self._services[-1].heard_in_this_thread():
            raise RuntimeError("a future's callback cannot wait for another evaluation: submit() it")
        return self.submit(problem, candidate, backend=backend).result()

    async def aevaluate(self, problem: Given, candidate: Given, *, backend: str | None = None) -> Result:
        """evaluate() for an event loop. The evaluation of a task that is cancelled ends by itself."""
        future = await asyncio.to_thread(self.submit, problem, candidate, backend=backend)
        return await asyncio.shield(asyncio.wrap_future(future))

    def close(self) -> None:
        """Ends all processes. May be called again."""
        with self._lock:
            services = list(self._services)
            self._end()
        for service in services:
            service.join()

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _open(self) -> Iterator[None]:
        with self._lock:
            if not self._end.alive:
                raise ValueError("this Judge is closed")
            if os.getpid() != self._process:
                raise ValueError("this Judge belongs to the process that made it, and not to its forks")
            yield

    def _start(self) -> None:
        self._services[:] = [Service(self._command, self._stall, self._folder / "errors")]

    def _problem(self, given: Given) -> str:
        """Text has one file for all evaluations: by its path the program knows that it is the same problem again. A
        path may be relative to where the caller is now, which need not be where the process is."""
        if not is_text(given):
            return os.path.abspath(given) if os.path.exists(given) else os.fspath(given)
        text = str(given).encode("utf-8", "surrogatepass")
        place = self._folder / hashlib.sha256(text).hexdigest()
        with self._open():
            place.mkdir(exist_ok=True)
            file = place / "problem.py"
            return str(file) if file.exists() else problem_file(given, place)


def end(services: Sequence[Service], folder: Path, process: int) -> None:
    """Waits for nothing: a garbage collection may call it, in any thread."""
    if os.getpid() != process:
        return
    for service in services:
        service.kill("this Judge was closed before the evaluation ended")
    shutil.rmtree(folder, ignore_errors=True)
