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
Take = Callable[[Reply], None]
START_S = 120.0


class Service:
    """One process, ready for requests. Raises ValueError, with the program's sentence, where it refuses to start, and
    NotFound where it is another program.

    One thread hears all that it says, and calls every Take, of the answers and, once the process is gone, of what is
    left without one: so a Take must not wait for another evaluation.

    stall: seconds without a word, while it has work, after which it is killed.
    errors: a file for what it says on stderr.
    """

    def __init__(self, arguments: Sequence[str], stall: float, errors: Path):
        self._stall = stall
        self._errors = errors
        self._why = ""  # it was ended on purpose
        self._lock = threading.Lock()  # of all below
        self._ended = False
        self._waiting: dict[int, Take] = {}
        self._heard = 0.0  # when it last answered, or got work while it had none
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._gone = threading.Event()
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
                self._kill()
            raise
        self._reader = threading.Thread(target=self._read, name="kernelbench-judge", daemon=True)
        self._reader.start()
        threading.Thread(target=self._write, name="kernelbench-judge", daemon=True).start()

    def submit(self, number: int, request: dict[str, Any], take: Take) -> bool:
        """`take` gets the reply to the request, or an infrastructure_error when the process ends without one. False:
        it has ended, and is gone. Raises UnicodeEncodeError (a ValueError) for text that no JSON can hold."""
        line = json.dumps({"id": number, **request}, ensure_ascii=False).encode() + b"\n"
        with self._lock:
            if not self._ended:
                if not self._waiting:
                    self._heard = time.monotonic()
                self._waiting[number] = take
                self._requests.put(line)
                return True
        self._gone.wait()
        return False

    def heard_in_this_thread(self) -> bool:
        """Whether a Take is what calls this."""
        return threading.current_thread() is self._reader

    def kill(self, why: str) -> None:
        """Ends the process and everything below it, and waits for nothing: what has no answer gets an
        infrastructure_error that says why."""
        self._why = why
        self._kill()

    def join(self) -> None:
        """Waits until the process is gone and every Take has been called, but for the one that calls this."""
        if not self.heard_in_this_thread():
            self._reader.join()

    def _await_greeting(self, program: str) -> None:
        assert self._process.stdout is not None
        first = b""
        if wait_for(self._process.stdout.fileno(), START_S):
            first = self._process.stdout.readline()
        if is_greeting(first):
            return
        # Another program, or one that ends by itself.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(START_S / 10)
        self._kill()
        code = 0 if first else self._process.wait()
        nothing = command.result_of(program, code, processes.text(first), processes.text(self._errors.read_bytes()))
        raise RuntimeError(nothing["message"])

    def _write(self) -> None:
        # A thread of its own: the program reads no more than it can judge, and nobody is to wait for that.
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(OSError), stdin:
            while (line := self._requests.get()) is not None:
                stdin.write(line)
                stdin.flush()

    def _read(self) -> None:
        why = "the judge's answers could not be read"
        try:
            why = self._hear()
        finally:
            # In this order: none is to start another judge while this one runs.
            with self._lock:
                self._ended = True
                waiting, self._waiting = self._waiting, {}
            self._requests.put(None)
            self._kill()
            self._process.wait()
            self._gone.set()
            for take in waiting.values():
                take(command.infrastructure_error(self._why or why))

    def _hear(self) -> str:
        """Delivers answers until there are no more, and says why there are none."""
        stdout = self._process.stdout
        assert stdout is not None
        partial = b""
        with stdout:
            while True:
                if not wait_for(stdout.fileno(), 1.0):
                    if self._is_stalled():
                        return f"no evaluation ended within {self._stall:g} s, and the judge was killed"
                    continue
                got = os.read(stdout.fileno(), 1 << 16)
                if not got:
                    code = self._process.wait()
                    with contextlib.suppress(OSError):
                        if said := command.sentence(processes.text(self._errors.read_bytes())):
                            return said
                    return f"kernelbench ended with code {code} before it had judged this"
                *lines, partial = (partial + got).split(b"\n")
                for line in lines:
                    self._deliver(json.loads(line))

    def _is_stalled(self) -> bool:
        with self._lock:
            return bool(self._waiting) and time.monotonic() - self._heard > self._stall

    def _deliver(self, reply: Reply) -> None:
        with self._lock:
            self._heard = time.monotonic()
            take = self._waiting.pop(reply.pop("id"), None)
        if take is not None:
            take(reply)

    def _kill(self) -> None:
        if self._process.poll() is None:
            processes.kill(self._process.pid)


def wait_for(descriptor: int, seconds: float) -> bool:
    """Whether it can be read within that time. (No select(): it knows a thousand descriptors at most.)"""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(1000 * seconds))


def is_greeting(line: bytes) -> bool:
    try:
        return json.loads(line)["ready"] is True
    except (ValueError, TypeError, KeyError):
        return False
