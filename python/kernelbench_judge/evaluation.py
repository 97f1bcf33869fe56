"""One evaluation, waited for or awaited."""
from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import command, processes
from .binary import NotFound, find_binary
from .command import Result
from .source import candidate_file, is_text, problem_file

Given = str | os.PathLike[str]  # an id (problems only), a path, or source text
TIMEOUT_S = 900.0


def evaluate(problem: Given, candidate: Given, *, device: str | None = None, size: str | None = None,
             backend: str | None = None, timeout: float = TIMEOUT_S, **options: Any) -> Result:
    """Judges one candidate, and returns the object that `kernelbench eval --json` prints.

    problem: an id such as "level1/19", the path of a problem file, or its source text.
    candidate: the path of a kernel (.py with a class ModelNew, .cpp, .cu, .hip), or its source text.
        A str with a line break, and a Source, is text; it is written to a private temporary folder.
    device: "cpu", "cuda:0"; by default a GPU where there is one.
    size: "public" (the default), or a key of the problem's SIZES such as "small".
    backend: the language of source text, "python", "cpp", "cuda_cpp" or another that the program knows; by default
        what the text looks like.
    timeout: seconds of wall-clock time that this call takes at most, compilation included. The judge's own limits,
        which make the verdict `timeout`, are lowered to at most half of it; when it is up all the same, the processes
        are killed and the result is an infrastructure_error.
    options: any option of `kernelbench eval` with _ for -: precision="bf16", set={"batch_size": 16}, no_timing=True,
        no_stress=True, trials=5, rules="kernelbench", sandbox="require", python="/path", ... The program's --timeout,
        of everything but compilation, is evaluation_timeout here.

    result["verdict"] is one word: correct, static_reject, compile_error, load_error, runtime_error, timeout,
    out_of_memory, wrong_shape, wrong_dtype, wrong_value, tampering; or infrastructure_error, which says nothing about
    the candidate and is not to count against it. result["message"] says why; "speedup", "speedup_ci95", "time_us" and
    "reference_time_us" are numbers, or None where nothing was timed.

    Raises ValueError, with the program's sentence, for options that mean nothing, a file that does not exist and a
    problem that cannot be run; NotFound when there is no program. Threads may call it at the same time, but two
    evaluations that time on one device disturb each other.
    """
    with prepared(problem, candidate, device, size, backend, timeout, options) as arguments:
        try:
            answer = processes.run(arguments, timeout)
        except processes.Overtime:
            return finished(overtime(timeout), problem, candidate)
        except OSError as error:
            raise not_started(arguments[0], error) from error
        return finished(command.result_of(arguments[0], *answer), problem, candidate)


async def aevaluate(problem: Given, candidate: Given, *, device: str | None = None, size: str | None = None,
                    backend: str | None = None, timeout: float = TIMEOUT_S, **options: Any) -> Result:
    """evaluate() for an event loop. A task that is cancelled has ended all processes of its evaluation when the
    cancellation comes out of it."""
    with prepared(problem, candidate, device, size, backend, timeout, options) as arguments:
        try:
            answer = await processes.arun(arguments, timeout)
        except processes.Overtime:
            return finished(overtime(timeout), problem, candidate)
        except OSError as error:
            raise not_started(arguments[0], error) from error
        return finished(command.result_of(arguments[0], *answer), problem, candidate)


@contextlib.contextmanager
def prepared(problem: Given, candidate: Given, device: str | None, size: str | None, backend: str | None,
             timeout: float, options: dict[str, Any]) -> Iterator[list[str]]:
    """The command line of one evaluation, whose files last as long as the block."""
    program = find_binary()
    flags = command.options(timeout, device, size, backend, options)
    with tempfile.TemporaryDirectory(prefix="kernelbench-judge-") as folder:
        files = [problem_file(problem, Path(folder)), candidate_file(candidate, backend, Path(folder))]
        yield [program, "eval", "--json", *flags, "--", *files]


def finished(result: Result, problem: Given, candidate: Given) -> Result:
    """The result under names that mean something to the caller, whose text has had a file's name for a while."""
    if is_text(problem):
        result["problem"] = "problem.py"
    elif not result["problem"]:
        result["problem"] = os.fspath(problem)
    if not result["candidate"]:
        result["candidate"] = "candidate" if is_text(candidate) else os.path.basename(os.fspath(candidate))
    return result


def overtime(timeout: float) -> Result:
    return command.infrastructure_error(f"the evaluation did not end within {timeout:g} s, and was killed")


def not_started(program: str, error: OSError) -> NotFound:
    return NotFound(f"{program} cannot be run ({error.strerror}): set KERNELBENCH_BINARY to the path of kernelbench")
