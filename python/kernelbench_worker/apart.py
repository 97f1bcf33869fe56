"""Runs a problem's code in a process of its own, forked from one that has torch imported and runs none of it."""
import contextlib
import json
import os
import signal

from .channel import REPLY_LIMIT_BYTES
from .errors import WorkerError, error_of


def run_apart(job, source, channel):
    """Returns the reply that job() makes in a child process; `source` is what will be run there.

    `channel` is the control socket, which is not for the child. A child that ends without an answer is a
    `problem` error.
    """
    if "transformers" in source:
        with contextlib.suppress(ImportError):
            import transformers  # noqa: F401  here once, and not in each child
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        channel.close()
        _answer(writing, job)
    os.close(writing)
    try:
        answer = _read(reading)
    finally:
        os.close(reading)
        _, status = os.waitpid(child, 0)
    try:
        reply = json.loads(answer)
        if isinstance(reply, dict):
            return reply
    except ValueError:
        pass
    how = (f"a signal ({signal.strsignal(os.WTERMSIG(status))})" if os.WIFSIGNALED(status)
           else f"exit status {os.waitstatus_to_exitcode(status)}")
    raise WorkerError("problem", f"the process that ran the problem ended by {how}")


def _answer(fd, job):
    """Writes the reply to `fd` and ends the process, whatever the problem's code does."""
    try:
        try:
            reply = {"ok": True, **job()}
        except BaseException as exception:
            reply = {"ok": False, "error": error_of(exception, "problem")}
        with os.fdopen(fd, "wb") as file:
            file.write(json.dumps(reply, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace"))
    finally:
        os._exit(0)


def _read(fd):
    data = bytearray()
    while len(data) <= REPLY_LIMIT_BYTES:
        piece = os.read(fd, 1 << 16)
        if not piece:
            break
        data += piece
    return data
