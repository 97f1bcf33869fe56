"""Problems and candidates as callers give them, and as files that the program reads."""
from __future__ import annotations

import os
import re
from pathlib import Path

SUFFIXES = {"python": ".py", "cpp": ".cpp", "cuda_cpp": ".cu"}
_NATIVE = re.compile(r"^\s*#\s*include\s*[<\"]kernelbench/kernel\.h[>\"]", re.M)
# Of what may be Python as well, and is when it does not include the native interface.
NATIVE_SUFFIXES = {"hip": ".hip"}
_HIP = re.compile(r"^\s*#\s*include\s*[<\"]hip/", re.M)
_CUDA = re.compile(r"__global__|<<<|\bcuda[A-Z]\w*|#\s*include\s*<cu")
_ID = re.compile(r"(?:level_?\d+(?:/|_problem_)|\d+/)(\d+)\Z")


class Source(str):
    """Source text, whatever it looks like. A plain str is taken for source text when it has a line break; a model's
    answer, which can be anything, is best given as Source(answer)."""


def is_text(given: str | os.PathLike[str]) -> bool:
    """Whether `given` is source text, and not a path or an id."""
    return isinstance(given, Source) or (isinstance(given, str) and "\n" in given)


def suffix_of(text: str, backend: str | None) -> str:
    """Returns the suffix by which the program knows the language of a candidate's text: that of `backend`, or, without
    one, the text's own. Everything but a native kernel is Python."""
    native = _NATIVE.search(text) is not None
    if backend is not None:
        return SUFFIXES.get(backend) or (NATIVE_SUFFIXES.get(backend, ".py") if native else ".py")
    if not native:
        return ".py"
    if _HIP.search(text):
        return ".hip"
    return ".cu" if _CUDA.search(text) else ".cpp"


def problem_id(given: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Returns (level, number) of an id such as level1/19; None for everything else."""
    if not isinstance(given, str) or is_text(given) or not _ID.match(given):
        return None
    level, number = re.findall(r"\d+", given)
    return int(level), int(number)


def write(path: Path, text: str) -> None:
    # A lone surrogate is no UTF-8, and the program will say so.
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


def problem_file(given: str | os.PathLike[str], folder: Path) -> str:
    """Returns what the program takes as PROBLEM; text is written into `folder`."""
    if not is_text(given):
        return os.fspath(given)
    path = folder / "problem.py"
    write(path, str(given))
    return str(path)


def candidate_file(given: str | os.PathLike[str], backend: str | None, folder: Path, stem: str = "candidate") -> str:
    """Returns what the program takes as CANDIDATE; text is written into `folder`. ValueError for a path whose suffix
    tells no language."""
    if not is_text(given):
        path = os.fspath(given)
        if Path(path).suffix not in {".cc", *SUFFIXES.values(), *NATIVE_SUFFIXES.values()}:
            raise ValueError(f"{path!r} is neither a path that ends in .py, .cpp, .cc, .cu or .hip nor source text with "
                             "a line break: give text as kernelbench_judge.Source(text)")
        return path
    file = folder / (stem + suffix_of(str(given), backend))
    write(file, str(given))
    return str(file)
