"""Builds the extensions of a Python candidate, inside the compile sandbox.

    python -I <folder>/kernelbench_worker/prebuild.py --source FILE --out DIR [--problem FILE] [--architecture sm_90]

Executes the candidate with torch.utils.cpp_extension.load and load_inline building under DIR/<n>/.
What is built only when ModelNew is constructed, or first called, is built too if --problem says
with which arguments (the call: only where the problem has a smaller size). --architecture names the
GPU that a candidate is for; the sandbox has none, and the CPU stands in for it. Writes, atomically,
DIR/extensions.json:

    {"status": "ok" | "compile_error" | "load_error", "text": "...",
     "extensions": [{"name": N, "file": path relative to DIR}],       the names are unique
     "sources": [{"extension": N, "source": file name, "headers": "lean" | "full" | "own",
                  "why": "...", "seconds": S}]}                       see lean_compiler.py

and exits with 0 in each of these cases; anything else is the machine's fault. With the status "ok",
`text` has what failed to build and the candidate did without, which sources needed all of PyTorch's
headers, and whether the CPU stood in for a GPU. Writes to DIR alone. MAX_JOBS in the environment limits the compilers that run at
once.
"""
import argparse
import contextlib
import json
import os
import shlex
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

LEAN_COMPILER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lean_compiler.py")
STOOD_IN = "the candidate uses the GPU while it is imported or constructed: in the build the CPU stood in for it"
TEXT_HEAD_BYTES, TEXT_TAIL_BYTES = 48 * 1024, 15 * 1024


class BuildError(Exception):
    """An extension could not be built; the text has the compiler's words."""


class Builder:
    """Builds each extension with torch's own functions, in a folder of its own."""

    def __init__(self, out):
        self._out = out
        self._folders = 0
        self.built = []     # as in extensions.json
        self.sources = []   # as in extensions.json
        self.failures = []  # texts

    def get(self, real, arguments):
        """Builds and loads one extension. Raises BuildError."""
        try:
            return self._build(real, arguments)
        except Exception as exception:
            text = f'building the extension "{arguments["name"]}" failed: {exception}'
            self.failures.append(text)
            raise BuildError(text) from exception

    def _build(self, real, arguments):
        from torch.utils import cpp_extension

        name = arguments["name"]
        if arguments.get("is_standalone"):
            raise ValueError("is_standalone=True makes a program; a candidate needs a module")
        if _wants_cuda(arguments) and not _has_nvcc(cpp_extension):
            raise OSError("it has CUDA sources, and this machine has no CUDA compiler (nvcc)")
        folder = os.path.join(self._out, str(self._folders))
        self._folders += 1
        os.makedirs(folder)
        arguments = {**arguments, "build_directory": folder, "verbose": False}
        arguments.pop("use_pch", None)  # it writes into torch's own folder
        try:
            result = real(**arguments)
        finally:
            self._collect_sources(name, folder)
        self.built.append({"name": name, "file": os.path.join(os.path.basename(folder), f"{name}.so")})
        return result

    def _collect_sources(self, name, folder):
        for file_name in sorted(os.listdir(folder)):
            if file_name.endswith(".headers.json"):
                with open(os.path.join(folder, file_name), encoding="utf-8") as file:
                    source = json.load(file)
                self.sources.append({"extension": name, **source, "source": os.path.basename(source["source"])})

    def words(self):
        """What there is to say of builds that did not fail the candidate."""
        slow = [f'the extension "{s["extension"]}": {s["source"]} was compiled with all of PyTorch\'s headers: {s["why"]}'
                for s in self.sources if s["headers"] == "full"]
        return "\n".join([*self.failures, *slow])


def _use_lean_compilers(folder):
    """Has torch call lean_compiler.py, by scripts in `folder` that bear the compilers' names."""
    from torch.utils import cpp_extension

    compilers = {"CXX": cpp_extension.get_cxx_compiler()}
    if cpp_extension.CUDA_HOME and not cpp_extension.IS_HIP_EXTENSION:
        compilers["PYTORCH_NVCC"] = os.path.join(cpp_extension.CUDA_HOME, "bin", "nvcc")
    os.makedirs(folder, exist_ok=True)
    for variable, compiler in compilers.items():
        path = shutil.which(compiler)
        if not path:
            continue  # torch will say so, if it is needed
        script = os.path.join(folder, os.path.basename(path))
        command = shlex.join([sys.executable, "-I", "-S", "-B", LEAN_COMPILER, path])
        with open(script, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {command} "$@"\n')
        os.chmod(script, 0o755)
        os.environ[variable] = script


def _wants_cuda(arguments):
    if arguments.get("with_cuda") is not None:
        return arguments["with_cuda"]
    sources = arguments.get("sources") or []
    sources = [sources] if isinstance(sources, str) else sources
    return bool(arguments.get("cuda_sources")) or any(os.fspath(s).endswith((".cu", ".cuh")) for s in sources)


def _has_nvcc(cpp_extension):
    home = cpp_extension.CUDA_HOME
    return bool(home and os.path.exists(os.path.join(home, "bin", "nvcc")) or shutil.which("nvcc"))


def prebuild(source, path, out, problem_path, architecture):
    """Builds, and returns the contents of extensions.json."""
    import torch

    from kernelbench_worker import extensions
    from kernelbench_worker.errors import users_traceback
    from kernelbench_worker.gpu_stand_in import GpuStandIn
    from kernelbench_worker.problem import execute

    builder = Builder(out)
    extensions.install(builder)
    _use_lean_compilers(os.path.join(out, "compilers"))
    stand_in = contextlib.nullcontext()
    if architecture and not torch.cuda.is_available():
        stand_in = GpuStandIn(architecture)
    status, text = "ok", ""
    try:
        with torch.no_grad(), stand_in:
            module = execute(source, "kernelbench_candidate", path)
    except BaseException as exception:
        failure = _build_error_in(exception)
        status = "compile_error" if failure else "load_error"
        text = str(failure) if failure else users_traceback(exception)
    else:
        if not builder.built and not builder.failures and extensions.mentioned_in(source) and problem_path:
            with stand_in:
                failure = _use(module, builder, problem_path)
            if failure:
                status, text = "compile_error", str(failure)
    if getattr(stand_in, "touched", False):
        text = "\n".join(filter(None, [text or builder.words(), STOOD_IN]))
    return {"status": status, "text": _bounded(text or builder.words()), "extensions": builder.built,
            "sources": builder.sources}


def _use(module, builder, problem_path):
    """Constructs ModelNew, then calls it, until something is built. Returns a BuildError or None."""
    import torch

    from kernelbench_worker.device import open_device
    from kernelbench_worker.problem import PUBLIC_SIZE, Problem

    with open(problem_path, encoding="utf-8") as file:
        request = {"source": file.read(), "path": problem_path, "size": PUBLIC_SIZE, "set": {},
                   "precision": "fp32", "weight_seed": 0}
    try:
        device = open_device("cpu")
        problem = Problem(request, device)
        small = next(iter(problem.sizes), None)
        if small:
            problem = Problem({**request, "size": small}, device)
        model = problem.construct(module.ModelNew, problem.init_inputs())
        if small and not builder.built:
            with torch.no_grad():
                model(*problem.draw_inputs(0))
    except BaseException as exception:
        return _build_error_in(exception)  # any other failure is the worker's to report
    return None


def _build_error_in(exception):
    """Returns the BuildError that `exception` is, or was caused by; None if none."""
    while exception is not None and not isinstance(exception, BuildError):
        exception = exception.__cause__ or exception.__context__
    return exception


def _bounded(text):
    """Keeps the start, where a compiler's first error is, and the end."""
    data = text.encode("utf-8", "replace")
    if len(data) > TEXT_HEAD_BYTES + TEXT_TAIL_BYTES:
        data = data[:TEXT_HEAD_BYTES] + b"\n[...]\n" + data[-TEXT_TAIL_BYTES:]
    return data.decode("utf-8", "ignore")


def main(argv=None):
    parser = argparse.ArgumentParser(prog="prebuild", description="Builds the extensions of a Python candidate.")
    parser.add_argument("--source", required=True, help="the candidate's file")
    parser.add_argument("--out", required=True, help="the folder to build in")
    parser.add_argument("--problem", help="the problem's file")
    parser.add_argument("--architecture", help="of the GPU that the candidate is for (sm_90); none: the CPU")
    options = parser.parse_args(argv)
    out = os.path.abspath(options.out)
    os.makedirs(out, exist_ok=True)
    os.environ["HOME"] = out
    os.environ["TORCH_EXTENSIONS_DIR"] = os.path.join(out, "torch_extensions")
    # pip puts ninja beside the interpreter.
    path = os.environ.get("PATH") or os.defpath
    os.environ["PATH"] = os.path.dirname(os.path.abspath(sys.executable)) + os.pathsep + path

    with open(options.source, encoding="utf-8") as file:
        source = file.read()
    result = prebuild(source, options.source, out, options.problem, options.architecture)
    temporary = os.path.join(out, "extensions.json.new")
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(result, file)
    os.replace(temporary, os.path.join(out, "extensions.json"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
