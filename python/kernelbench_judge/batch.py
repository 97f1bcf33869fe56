"""Many evaluations. References are what an evaluation spends most of its time on: they are loaded, and timed alone,
once a problem and device by the command `run`, which judges everything whose problem is an id of the bundled set.
It compiles ahead of the GPUs, too. Problems that are paths or source text are judged by one `eval` each, one at a time
on a device, when `run` has finished: two judges on one device would disturb each other."""
from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import queue
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
from .evaluation import TIMEOUT_S, Given, aevaluate, finished, not_started, overtime
from .source import candidate_file, is_text, problem_id

Pair = tuple[Given, Given]
Deliver = Callable[[int, Result], None]
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
    timeout: of each evaluation, as for evaluate(). Those that share a process end at the latest when none has had a
        result for that long, plus the time that all compilations may take.
    Everything else is as for evaluate(), but for pairs that evaluate() would refuse with a ValueError: others are not
    lost over one, which becomes an infrastructure_error with the same sentence. Options that nothing can be judged
    with do raise ValueError.
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
    devices = list(devices) if devices else []
    flags = command.options(timeout, ",".join(devices) or None, size, backend, options)
    done: asyncio.Queue[tuple[int, Result] | None] = asyncio.Queue()

    def deliver(index: int, result: Result) -> None:
        done.put_nowait((index, finished(result, *pairs[index])))

    async def judge_one_by_one(indices: Iterator[int], device: str | None) -> None:
        for index in indices:
            try:
                result = await aevaluate(*pairs[index], device=device, size=size, backend=backend, timeout=timeout,
                                         **options)
            except ValueError as error:
                result = command.infrastructure_error(str(error))
            deliver(index, result)

    async def judge() -> None:
        try:
            by_id = [index for index, (problem, _) in enumerate(pairs) if problem_id(problem)]
            if by_id:
                limit = min(command.LIMITS["compile_timeout"], timeout / 2)
                compilations = math.ceil(len(by_id) / (jobs or max(1, (os.cpu_count() or 1) // 2)))
                stall = timeout + compilations * float(options.get("compile_timeout", limit))
                await judge_in_a_run(pairs, by_id, [*flags, *([f"--jobs={jobs}"] if jobs else [])], backend, stall,
                                     deliver)
            others = iter(sorted(set(range(len(pairs))) - set(by_id)))
            await all_or_none([judge_one_by_one(others, device) for device in devices or [None]])
        finally:
            done.put_nowait(None)

    task = asyncio.ensure_future(judge())
    try:
        while (each := await done.get()) is not None:
            yield each
        await task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def all_or_none(works: Sequence[Any]) -> None:
    """Awaits all; when one fails, or this task is cancelled, all have ended before that comes out."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def judge_in_a_run(pairs: Sequence[Pair], indices: Sequence[int], flags: Sequence[str], backend: str | None,
                         stall: float, deliver: Deliver) -> None:
    """Judges the pairs at `indices`, whose problems are ids, in one process. `stall`: seconds without a result after
    which it is killed."""
    program = find_binary()
    with tempfile.TemporaryDirectory(prefix="kernelbench-judge-") as name:
        folder = Path(name)
        waiting = set()
        for index in indices:
            try:
                put_sample(pairs[index], index, backend, folder)
                waiting.add(index)
            except (ValueError, OSError) as error:
                deliver(index, command.infrastructure_error(str(error)))
        if not waiting:
            return

        def take_results() -> None:
            for index, result in results_in(folder / DATABASE):
                if index in waiting:
                    waiting.remove(index)
                    candidate = pairs[index][1]
                    result["candidate"] = "" if is_text(candidate) else os.path.basename(os.fspath(candidate))
                    deliver(index, result)

        judged_before = len(waiting)
        try:
            code, stderr = await processes.follow([program, "run", *flags, "--", name], stall, take_results)
        except processes.Overtime:
            take_results()
            for index in waiting:
                deliver(index, overtime(stall))
            return
        except OSError as error:
            raise not_started(program, error) from error
        take_results()
        if waiting:
            if code == 2 and len(waiting) == judged_before:
                command.result_of(program, code, "", stderr)  # raises
            why = command.sentence(stderr) or f"kernelbench ended with code {code} and without a result"
            for index in waiting:
                deliver(index, command.infrastructure_error(why))


def put_sample(pair: Pair, index: int, backend: str | None, folder: Path) -> None:
    """Writes a candidate under the name by which `run` knows its problem, and by which we know it: the sample's number
    is the pair's index."""
    level, number = problem_id(pair[0]) or (0, 0)
    stem = f"level_{level}_problem_{number}_sample_{index}_kernel"
    path = candidate_file(pair[1], backend, folder, stem)
    if not is_text(pair[1]):
        shutil.copyfile(path, folder / (stem + Path(path).suffix))


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
