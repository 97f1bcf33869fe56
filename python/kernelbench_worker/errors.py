"""What went wrong, as the protocol's error object: a kind, and a text that helps its reader.

`problem` errors are one sentence with the line. All others are a traceback without the frames of
this worker, so that it starts and ends with the user's own lines.
"""
import os
import traceback
from contextlib import contextmanager

TEXT_LIMIT_BYTES = 16 * 1024
SENTENCE_LIMIT = 1000

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_MODULE_CALL = os.path.join("torch", "nn", "modules", "module.py")
_OUT_OF_MEMORY = ("can't allocate memory", "cannot allocate memory", "bad_alloc", "out of memory",
                  "status_alloc_failed")


class WorkerError(Exception):
    """An error whose kind (docs/protocol.md) and whole text are known where it is raised."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def is_out_of_memory(exception):
    """Tells whether memory ran out: MemoryError, torch's own, or an allocator's RuntimeError."""
    if isinstance(exception, MemoryError) or type(exception).__name__ == "OutOfMemoryError":
        return True
    if not isinstance(exception, RuntimeError):
        return False
    text = str(exception).lower()
    return any(phrase in text for phrase in _OUT_OF_MEMORY)


def error_of(exception, kind):
    """Returns the protocol's error object; `kind` is for what does not know its own."""
    try:
        if isinstance(exception, WorkerError):
            return {"kind": exception.kind, "text": bounded(str(exception))}
        if is_out_of_memory(exception):
            kind = "out_of_memory"
        return {"kind": kind, "text": bounded(users_traceback(exception))}
    except BaseException:  # the exception is the user's object: its methods may raise, too
        return {"kind": kind, "text": f"{type(exception).__name__} (its text cannot be shown)"}


def users_traceback(exception):
    """Formats `exception` and what caused it without the frames of this worker."""
    report = traceback.TracebackException.from_exception(exception, compact=True)
    pending = [report]
    while pending:
        one = pending.pop()
        one.stack = traceback.StackSummary.from_list([f for f in one.stack if not _is_ours(f)])
        pending += [e for e in (one.__cause__, one.__context__) if e is not None]
        pending += getattr(one, "exceptions", None) or []
    return "".join(report.format()).strip()


def _is_ours(frame):
    if frame.filename.startswith(_PACKAGE):
        return True
    return frame.name in ("_wrapped_call_impl", "_call_impl") and frame.filename.endswith(_MODULE_CALL)


def bounded(text, limit=TEXT_LIMIT_BYTES):
    """Returns at most `limit` bytes of UTF-8: the end of `text`, which has the message."""
    data = text.encode("utf-8", "replace")
    if len(data) > limit:
        mark = b"[...]\n"
        data = mark + data[len(data) - limit + len(mark):]
    return data.decode("utf-8", "ignore")


@contextmanager
def blame_problem(path, what):
    """Turns an exception of the problem's code into a `problem` error of one sentence."""
    try:
        yield
    except WorkerError:
        raise
    except BaseException as exception:
        kind = "out_of_memory" if is_out_of_memory(exception) else "problem"
        raise WorkerError(kind, _sentence(exception, path, what)) from exception


def _sentence(exception, path, what):
    if isinstance(exception, SyntaxError) and exception.filename == path:
        line, message = exception.lineno, exception.msg
    else:
        line = None
        for frame, number in traceback.walk_tb(exception.__traceback__):
            if frame.f_code.co_filename == path:
                line = number
        message = " ".join(str(exception).split())
    where = os.path.basename(path) + (f", line {line}" if line else "")
    said = f"{type(exception).__name__}: {message}" if message else type(exception).__name__
    return f"{where}: {what} raised {said}"[:SENTENCE_LIMIT]
