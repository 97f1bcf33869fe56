"""Many evaluations. References are what an evaluation spends most of its time on: the command `run` loads them, and
times them alone, once a problem and device, and compiles ahead of the GPUs. So a batch is a `run`: one for each problem
set that it names, and one for the problems that come as paths or source text, of which a set is made for the while.
They follow each other, because two judges on one device would disturb each other."""
from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import math
import os
import queue
import re
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import command, processes
from .binary import find_binary
from .command import Result
from .evaluation import TIMEOUT_S, Given, not_started, overtime
from .source import candidate_file, is_text, problem_id, write

Pair = tuple[Given, Given]
DATABASE = "kernelbench.db"


def evaluate_many(pairs: Iterable[Pair], /, *, jobs: int | None = None, devices: Sequence[str] | None = None,
                  size: str | None = None, backend: str | None = None, timeout: float = TIMEOUT_S,
                  **options: Any) -> list[Result]:
    """evaluate_each(), all results in the order of the pairs."""
    pairs = list(pairs)
    results: list[Result] = [{} for _ in pairs]
    for index, result in evaluate_each(pairs, jobs=jobs, devices=devices, size=size, backend=backend, timeout=timeout,
                                       **options):
        results[index] = result
    return results


def evaluate_each(pairs: Iterable[Pair], /, *, jobs: int | None = None, devices: Sequence[str] | None = None,
                  size: str | None = None, backend: str | None = None, timeout: float = TIMEOUT_S,
                  **options: Any) -> Iterator[tuple[int, Result]]:
    """Judges many (problem, candidate) pairs, and yields (index, result) as each is done. An iterator that is closed
    or dropped ends all processes.

    jobs: compilations at a time; by default as many as the program thinks fit.
    devices: such as ["cuda:0", "cuda:1"], one judge each; by default one GPU where there is one, else the CPU.
    timeout: of each evaluation, as for evaluate(); but their process is killed when none of them has had a result for
        that long, plus the time that all compilations may take.
    Everything else is as for evaluate(), but for pairs that evaluate() would refuse with a ValueError: others are not
    lost over one, which becomes an infrastructure_error with the program's sentence. Options and problem sets with
    which nothing can be judged do raise ValueError.
    """
    pairs = list(pairs)
    results: queue.SimpleQueue[tuple[int, Result] | BaseException | None] = queue.SimpleQueue()
    started: queue.SimpleQueue[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = queue.SimpleQueue()

    async def judge() -> None:
        task = asyncio.current_task()
        assert task is not None
        started.put((asyncio.get_running_loop(), task))
        async for each in aevaluate_each(pairs, jobs=jobs, devices=devices, size=size, backend=backend,
                                         timeout=timeout, **options):
            results.put(each)

    # An event loop of its own in a thread: the caller may be inside another loop, as in a notebook.
    def loop() -> None:
        try:
            asyncio.run(judge())
            results.put(None)
        except BaseException as error:
            results.put(error)

    thread = threading.Thread(target=loop, name="kernelbench-judge", daemon=True)
    thread.start()
    judging_loop, task = started.get()
    try:
        while (each := results.get()) is not None:
            if isinstance(each, BaseException):
                raise each
            yield each
    finally:
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            judging_loop.call_soon_threadsafe(task.cancel)
        thread.join()


async def aevaluate_each(pairs: Iterable[Pair], /, *, jobs: int | None = None, devices: Sequence[str] | None = None,
                         size: str | None = None, backend: str | None = None, timeout: float = TIMEOUT_S,
                         **options: Any) -> AsyncIterator[tuple[int, Result]]:
    """evaluate_each() for an event loop. It ends all processes when it is closed (`contextlib.aclosing`) and when its
    task is cancelled."""
    pairs = list(pairs)
    flags = command.options(timeout, ",".join(devices or []) or None, size, backend, options)
    if jobs is not None:
        flags.append(f"--jobs={jobs}")
    done: asyncio.Queue[tuple[int, Result] | None] = asyncio.Queue()

    def deliver(index: int, result: Result) -> None:
        done.put_nowait((index, renamed(result, *pairs[index])))

    async def judge_all() -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="kernelbench-judge-") as name:
                runs, refused = lay_out(pairs, backend, Path(name))
                for index, why in refused.items():
                    deliver(index, command.infrastructure_error(why))
                for run in runs:
                    compilations = math.ceil(len(run.problems) / (jobs or max(1, (os.cpu_count() or 1) // 2)))
                    limit = options.get("compile_timeout", min(command.LIMITS["compile_timeout"], timeout / 2))
                    await judge(run, flags, timeout + compilations * float(limit), deliver)
        finally:
            done.put_nowait(None)

    task = asyncio.ensure_future(judge_all())
    try:
        while (each := await done.get()) is not None:
            yield each
        await task
    finally:
        task.cancel()
        await asyncio.wait([task])


@dataclasses.dataclass
class Run:
    """One process to be: its folder of samples, and the problem's id of each of them. A sample's number is its pair's
    index."""

    folder: Path
    problem_set: str | None  # None: what the caller's options say
    problems: dict[int, tuple[int, int]] = dataclasses.field(default_factory=dict)


def lay_out(pairs: Sequence[Pair], backend: str | None, folder: Path) -> tuple[list[Run], dict[int, str]]:
    """Writes all files of a batch into `folder`. Returns the runs, and why some pairs are in none."""
    made_set = folder / "problems"
    made: dict[str, tuple[int, int]] = {}  # a problem's source → the id that it got
    runs: dict[str | None, Run] = {}
    refused: dict[int, str] = {}
    for index, (problem, candidate) in enumerate(pairs):
        try:
            problem_set, known = set_and_id(problem)
            if known is None:
                source = str(problem) if is_text(problem) else Path(problem).read_text("utf-8", "surrogateescape")
                problem_set, known = str(made_set), made.setdefault(source, (1, len(made) + 1))
                file = made_set / "level1" / f"{known[1]}_problem.py"
                file.parent.mkdir(parents=True, exist_ok=True)
                write(file, source)
            run = runs.setdefault(problem_set, Run(folder / f"run{len(runs)}", problem_set))
            run.folder.mkdir(exist_ok=True)
            level, number = known
            put_sample(candidate, f"level_{level}_problem_{number}_sample_{index}_kernel", backend, run.folder)
            run.problems[index] = known
        except (ValueError, OSError) as error:
            refused[index] = str(error)
    return [run for run in runs.values() if run.problems], refused


def set_and_id(problem: Given) -> tuple[str | None, tuple[int, int] | None]:
    """level1/19 → (None, (1, 19)), SET:level1/19 → ("SET", (1, 19)); (None, None) for a path and for text."""
    if isinstance(problem, str) and not is_text(problem) and ":" in problem:
        name, _, rest = problem.rpartition(":")
        return (name, problem_id(rest)) if problem_id(rest) else (None, None)
    return None, problem_id(problem)


def put_sample(candidate: Given, stem: str, backend: str | None, folder: Path) -> None:
    path = candidate_file(candidate, backend, folder, stem)
    if not is_text(candidate):
        shutil.copyfile(path, folder / (stem + Path(path).suffix))


async def judge(run: Run, flags: Sequence[str], stall: float, deliver: Callable[[int, Result], None]) -> None:
    """Judges the samples of one run. `stall`: seconds without a result after which it is killed. ValueError where the
    program will judge none of them."""
    program = find_binary()
    if run.problem_set is not None:
        flags = [*(flag for flag in flags if not flag.startswith("--problems=")), f"--problems={run.problem_set}"]
    waiting = dict(run.problems)

    def take_results() -> None:
        for index, result in results_in(run.folder / DATABASE):
            if waiting.pop(index, None):
                deliver(index, result)

    try:
        code, stderr = await processes.follow([program, "run", *flags, "--", str(run.folder)], stall, take_results)
    except processes.Overtime:
        take_results()
        for index in waiting:
            deliver(index, overtime(stall))
        return
    except OSError as error:
        raise not_started(program, error) from error
    take_results()
    if len(waiting) == len(run.problems) and code not in (0, 1):
        nothing = command.result_of(program, code, "", stderr)  # raises, unless the fault is the program's own
        stderr = nothing["message"]
    for index, problem in waiting.items():
        deliver(index, command.infrastructure_error(why_left_out(problem, code, stderr)))


def why_left_out(problem: tuple[int, int], code: int, stderr: str) -> str:
    """The sentence about this problem, else the last one."""
    level, number = problem
    for line in stderr.splitlines():
        if re.search(rf"level{level}(/| has no problem ){number}\b", line):
            return command.sentence(line)
    return command.sentence(stderr) or f"kernelbench ended with code {code}, and without a result"


def renamed(result: Result, problem: Given, candidate: Given) -> Result:
    """The result under the names that the caller knows, in the place of those in our folder."""
    if problem_id(problem) is None or not result["problem"]:
        result["problem"] = "problem.py" if is_text(problem) else os.fspath(problem)
    result["candidate"] = ("candidate" + Path(result["candidate"]).suffix if is_text(candidate) else
                           os.path.basename(os.fspath(candidate)))
    return result


def results_in(database: Path) -> list[tuple[int, Result]]:
    """What a run has stored so far, which may still be going on."""
    if not database.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10)) as connection:
        try:
            rows = connection.execute("SELECT sample, result_json FROM evaluations").fetchall()
        except sqlite3.OperationalError:  # not made yet
            return []
    results = []
    for sample, text in rows:
        result = json.loads(text)
        result.pop("sample", None)
        results.append((sample, result))
    return results
