"""A process of `kernelbench serve`: requests go in, one JSON object a line, and each answer finds who asked."""
from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import command, processes
from .evaluation import not_started

Reply = dict[str, Any]
Take = Callable[[Reply], None]  # called in a thread of the service


class Service:
    """One process, ready for requests. Raises ValueError, with the program's sentence, where it refuses to start, and
    NotFound where it is another program.

    stall: seconds without a word, while it has work, after which it is killed.
    errors: a file for what it says on stderr.
    """

    def __init__(self, arguments: Sequence[str], stall: float, errors: Path):
        self._stall = stall
        self._errors = errors
        self._lock = threading.Lock()  # of all below
        self._ended = False
        self._waiting: dict[int, Take] = {}
        self._heard = 0.0  # when it last answered, or got work while it had none
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        with errors.open("wb") as stderr:
            try:
                self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                 stderr=stderr, start_new_session=True)
            except OSError as error:
                raise not_started(arguments[0], error) from error
        try:
            self._await_greeting(arguments[0])
        except BaseException:
            with self._process:  # closes its pipes
                self._end_process()
            raise
        self._threads = [threading.Thread(target=work, name="kernelbench-judge", daemon=True)
                         for work in (self._write, self._read)]
        for thread in self._threads:
            thread.start()

    def _await_greeting(self, program: str) -> None:
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        if is_greeting(first):
            return
        # Another program, or one that ends by itself.
        code = 0 if first else self._process.wait(10)
        nothing = command.result_of(program, code, processes.text(first), processes.text(self._errors.read_bytes()))
        raise RuntimeError(nothing["message"])

    def submit(self, number: int, request: dict[str, Any], take: Take) -> bool:
        """`take` gets the reply to the request, or an infrastructure_error when the process ends without one. False:
        it has ended already."""
        with self._lock:
            if self._ended:
                return False
            if not self._waiting:
                self._heard = time.monotonic()
            self._waiting[number] = take
        self._requests.put(json.dumps({"id": number, **request}).encode() + b"\n")
        return True

    def end(self, why: str) -> None:
        """Ends the process and everything below it; what waits gets an infrastructure_error that says why."""
        self._give_up(why)
        self._end_process()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _write(self) -> None:
        # A thread of its own: the program reads no more than it can judge, and nobody is to wait for that.
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(OSError), stdin:
            while (line := self._requests.get()) is not None:
                stdin.write(line)
                stdin.flush()

    def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        partial = b""
        with stdout:
            while True:
                if not select.select([stdout], [], [], 1.0)[0]:
                    if self._is_stalled():
                        why = f"no evaluation ended within {self._stall:g} s, and the judge was killed"
                        break
                    continue
                got = os.read(stdout.fileno(), 1 << 16)
                if not got:
                    code = self._process.wait()
                    why = self._said() or f"kernelbench ended with code {code} before it had judged this"
                    break
                *lines, partial = (partial + got).split(b"\n")
                for line in lines:
                    self._deliver(json.loads(line))
        self._give_up(why)
        self._end_process()

    def _is_stalled(self) -> bool:
        with self._lock:
            return bool(self._waiting) and time.monotonic() - self._heard > self._stall

    def _deliver(self, reply: Reply) -> None:
        with self._lock:
            self._heard = time.monotonic()
            take = self._waiting.pop(reply.pop("id"), None)
        if take is not None:
            take(reply)

    def _give_up(self, why: str) -> None:
        with self._lock:
            self._ended = True
            waiting, self._waiting = self._waiting, {}
        self._requests.put(None)
        for take in waiting.values():
            take(command.infrastructure_error(why))

    def _end_process(self) -> None:
        if self._process.poll() is None:
            processes.kill(self._process.pid)
        self._process.wait()

    def _said(self) -> str:
        return command.sentence(processes.text(self._errors.read_bytes()))


def is_greeting(line: bytes) -> bool:
    try:
        return json.loads(line)["ready"] is True
    except (ValueError, TypeError, KeyError):
        return False
