"""Processes of the program: each in a group of its own, and none is left when its caller turns away."""
from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path


class Overtime(Exception):
    """The process was killed because its time was up."""


def run(arguments: Sequence[str], timeout: float) -> tuple[int, str, str]:
    """Returns exit code (negative: the signal), stdout and stderr. Raises Overtime. Whatever raises, KeyboardInterrupt
    too, ends the process and all of its workers first."""
    process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True)
    with ending(process):
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Overtime from None
    return process.returncode, text(out), text(err)


async def arun(arguments: Sequence[str], timeout: float) -> tuple[int, str, str]:
    """The same on an event loop; a cancelled task ends the process and its workers before it goes on."""
    async with started(arguments) as process:
        try:
            out, err = await asyncio.wait_for(process.communicate(), timeout)
        except asyncio.TimeoutError:
            raise Overtime from None
        assert process.returncode is not None
        return process.returncode, text(out), text(err)


async def follow(arguments: Sequence[str], stall: float, on_output: Callable[[], None]) -> tuple[int, str]:
    """Calls `on_output` whenever the process writes to stdout; returns its exit code and stderr. Raises Overtime when
    it writes nothing for `stall` seconds."""
    async with started(arguments) as process:
        assert process.stdout is not None and process.stderr is not None
        errors = asyncio.ensure_future(process.stderr.read())
        try:
            while await asyncio.wait_for(process.stdout.read(1 << 16), stall):
                on_output()
            code = await asyncio.wait_for(process.wait(), stall)
            return code, text(await errors)
        except asyncio.TimeoutError:
            raise Overtime from None
        finally:
            errors.cancel()


def text(output: bytes) -> str:
    return output.decode("utf-8", "replace")


@contextlib.asynccontextmanager
async def started(arguments: Sequence[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that ends, with everything below it, when the block is left."""
    process = await asyncio.create_subprocess_exec(*arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                                   stderr=subprocess.PIPE, start_new_session=True)
    try:
        yield process
    finally:
        if process.returncode is None:
            kill(process.pid)
            # Dead by now: the wait is short, and a second cancellation must not cut it.
            await asyncio.shield(process.wait())


@contextlib.contextmanager
def ending(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ends the process and everything below it, if it still runs when the block is left."""
    try:
        yield
    finally:
        if process.poll() is None:
            kill(process.pid)
            process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def kill(pid: int) -> None:
    """Kills the process group that `pid` leads, and its workers, which have sessions of their own. They die with it
    as it is; where there is no sandbox, what they have started would not."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGSTOP)
        below = descendants(pid)
        os.killpg(pid, signal.SIGKILL)
        for one in below:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """Everything below `pid`, itself left out."""
    found: list[int] = []
    above = [pid]
    while above:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{above.pop()}/task").iterdir():
                with contextlib.suppress(OSError):
                    children = [int(child) for child in (task / "children").read_text().split()]
                    found += children
                    above += children
    return found
