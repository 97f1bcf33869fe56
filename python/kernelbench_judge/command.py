"""Keyword arguments as command-line options, and what the program answers as a result."""
from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .binary import NotFound
from .source import SUFFIXES

Result = dict[str, Any]

# The judge's own limits, seconds. Each is lowered to half of the whole evaluation's limit, so that a kernel that hangs
# gets its verdict before the process is killed.
LIMITS = {"compile_timeout": 300.0, "load_timeout": 60.0, "first_call_timeout": 180.0, "call_timeout": 10.0,
          "evaluation_timeout": 600.0}
_FLAGS = {"evaluation_timeout": "timeout"}
_OURS = {"json", "help", "version", "timeout", "jobs"}


def options(timeout: float, device: str | None, size: str | None, backend: str | None,
            given: Mapping[str, Any]) -> list[str]:
    """Returns the options as a list for the program. `given`: its options by name, with _ for -; True for a flag, a
    list for a repeated option, a mapping for `set`; None and False leave one out."""
    if not timeout > 0:
        raise ValueError("timeout is a number of seconds above 0")
    named: dict[str, Any] = {"device": None if device is None else str(device), "size": size}
    if backend is not None and backend not in SUFFIXES:
        named["backend"] = backend
    for name in given:
        if name in _OURS or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise ValueError(f"{name!r} is no option of an evaluation (kernelbench eval --help lists them)")
    named.update({name: min(limit, timeout / 2) for name, limit in LIMITS.items()})
    named.update(given)
    arguments: list[str] = []
    for name, value in named.items():
        flag = "--" + _FLAGS.get(name, name).replace("_", "-")
        if isinstance(value, Mapping):
            value = [f"{key}={json.dumps(constant)}" for key, constant in value.items()]
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                arguments.append(flag)
            elif one is not None and one is not False:
                # With `=` a value that begins with - is one; an empty one would take the next argument.
                arguments += [f"{flag}={one}"] if str(one) else [flag, ""]
    return arguments


def sentence(stderr: str) -> str:
    """The last line that the program said, without its name."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    return lines[-1].removeprefix("kernelbench: ") if lines else ""


def infrastructure_error(message: str, problem: str = "", candidate: str = "") -> Result:
    """A result that says nothing about the candidate, with the members that callers read."""
    return {"problem": problem, "candidate": candidate, "verdict": "infrastructure_error", "message": message,
            "compiled": False, "correct": False, "public": {"compiled": False, "correct": False}, "flags": [],
            "time_us": None, "reference_time_us": None, "speedup": None, "speedup_ci95": None, "trials": [],
            "turns": [], "phases_ms": {}}


def result_of(program: str, code: int, stdout: str, stderr: str) -> Result:
    """What `eval --json` has said, as a result. ValueError where it refuses the input, NotFound where it is another
    program."""
    said = sentence(stderr)
    if code in (0, 1):
        try:
            result = json.loads(stdout)
        except ValueError:
            result = None
        if isinstance(result, dict) and "verdict" in result:
            return result
    elif code == 2 and "\nkernelbench: " in "\n" + stderr:
        if said.startswith("internal error"):
            return infrastructure_error(said)
        raise ValueError(said)
    elif code < 0:
        return infrastructure_error(f"kernelbench was ended by signal {-code}" + (f": {said}" if said else ""))
    raise NotFound(f"{program} does not answer as kernelbench does: set KERNELBENCH_BINARY to the path of kernelbench")
