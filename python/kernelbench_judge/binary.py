"""Where the program kernelbench is."""
from __future__ import annotations

import os
import shutil
from pathlib import Path


class NotFound(RuntimeError):
    """There is no kernelbench to run; the message says what to do."""


def find_binary() -> str:
    """Returns the path of the program: $KERNELBENCH_BINARY, else `kernelbench` on PATH, else the one that was built in
    the source tree that this file lies in. Raises NotFound."""
    chosen = os.environ.get("KERNELBENCH_BINARY")
    if chosen:
        if is_program(chosen):
            return os.path.abspath(chosen)
        raise NotFound(f"KERNELBENCH_BINARY is {chosen}, which is no program: set it to the path of kernelbench")
    built = Path(__file__).resolve().parents[2] / "build" / "release" / "kernelbench"
    found = shutil.which("kernelbench") or (str(built) if is_program(built) else None)
    if found is None:
        raise NotFound("there is no kernelbench: build it with `make build` in its source tree and set "
                       "KERNELBENCH_BINARY to build/release/kernelbench there, or put it on PATH")
    return found


def is_program(path: str | os.PathLike[str]) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
