"""Compiles one source of an inline extension with a small part of PyTorch's headers.

    python -I -S lean_compiler.py COMPILER ARGUMENTS...

Stands in front of g++ and nvcc, whose arguments it takes; prebuild.py tells torch.utils.cpp_extension
to call it. Most of the time that an inline extension takes to compile goes to torch/extension.h and
torch/types.h, of which launchers use little. In their places come those of lean/ and, for the
source at hand, the headers of the operators and helpers whose names occur in it. What does not
compile so is compiled with the real headers, and only that result counts.

What the two could compile to different code is compiled with the real headers, or with the part
of them that decides: torch::tensor() and requires_grad, and all that _OTHERS names.

Writes, beside the object file, OBJECT.headers.json:

    {"source": path, "headers": "lean" | "full" | "own", "why": "...", "seconds": S}

"own": the source includes none of PyTorch's umbrella headers; `why` says why the headers were not lean.
"""
import json
import os
import re
import subprocess
import sys
import time

LEAN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lean")
MAX_SOURCE_BYTES, MAX_SOURCES = 4 << 20, 64

_COMMENT_OR_LITERAL = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n]){1,8}'", re.DOTALL)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)
_UMBRELLAS = {"torch/extension.h", "torch/types.h", "torch/torch.h", "torch/all.h", "ATen/ATen.h"}
# Whatever could name an operator: it is called, or qualified; a method is not (those are all declared).
_NAME = re.compile(r"(?:::\s*(\w+)|(?<![\w.>:])(\w+)\s*\()")

# Parts of PyTorch that the lean headers leave out: not worth a try.
_OTHERS = re.compile(r"\btorch\s*::\s*(?:nn|autograd|jit|optim|data|serialize|fft|linalg|special|cuda|python|profiler|"
                     r"manual_seed|save|load)\b|\bTHP[A-Z]\w+|\bat\s*::\s*native\b")

# What else the umbrella headers have, by the words that ask for it.
_HELPERS = (
    (r"PYBIND11_|\bpy\s*::|\bpybind11\b|wrap_pybind_function",
     ("torch/csrc/Exceptions.h", "torch/csrc/utils/pybind.h")),
    (r"\bTORCH_LIBRARY|\bTORCH_SELECTIVE|\bLibrary\b", ("torch/library.h",)),
    (r"\bIValue\b|\bc10\s*::\s*(?:List|Dict)\b", ("ATen/core/ivalue.h",)),
    (r"\bparallel_(?:for|reduce)\b|\b[gs]et_num_threads\b", ("ATen/Parallel.h",)),
    (r"\bindexing\b|\bSlice\b|\bTensorIndex\b|\.\s*index(?:_put_)?\s*\(", ("ATen/TensorIndexing.h",)),
    (r"\bTensorGeometry\b", ("ATen/TensorGeometry.h",)),
    (r"\bGenerator\b", ("ATen/core/Generator.h",)),
    (r"\bReduction\b", ("ATen/core/Reduction.h",)),
    (r"\bDimVector\b", ("ATen/DimVector.h",)),
    (r"\b(?:cout|cerr|clog|ostream|ostringstream|stringstream)\b", ("ATen/Formatting.h",)),
    (r"\bTensorArg\b|\bcheckSameGPU\b|\bcheckAll\w+", ("ATen/TensorUtils.h",)),
    (r"\bStorage\b", ("c10/core/Storage.h",)),
    (r"\bexpand_size\b|\bexpand_inplace\b|\binfer_size\b", ("ATen/ExpandUtils.h",)),
    # Here torch:: has functions of its own that do other than those of at::.
    (r"\brequires_grad\b|(?<![\w.>])tensor\s*[({]|\bmake_variable\b",
     ("ATen/core/LegacyTypeDispatch.h", "torch/csrc/autograd/generated/variable_factories.h")),
)
_DEVICE_GUARD = re.compile(r"\b(?:device_of|DeviceGuard|OptionalDeviceGuard)\b")
_CONTEXT = re.compile(r"\b(?:globalContext|Context|hasCUDA|hasCuDNN|getNumGPUs|getCPUAllocator|manual_seed)\b")


class Plan:
    """How to compile a source: `headers` as in the JSON file, and for "lean" with what."""

    def __init__(self, headers, why="", includes=(), defines=()):
        self.headers, self.why, self.includes, self.defines = headers, why, includes, defines


def plan(source, folders, torch_folders):
    """Decides by what occurs in the file `source` and in those it includes from `folders`, the user's."""
    text, included = _read_all(source, folders)
    if not _UMBRELLAS & included:
        return Plan("own")
    words = _COMMENT_OR_LITERAL.sub(" ", text)
    other = _OTHERS.search(words)
    if other:
        return Plan("full", f"it uses {''.join(other.group().split())}")
    includes = []
    for pattern, headers in _HELPERS:
        if re.search(pattern, words):
            includes += headers
    defines = ["AT_PER_OPERATOR_HEADERS"]
    device_guard, context = _DEVICE_GUARD.search(words), _CONTEXT.search(words)
    for name in sorted({a or b for a, b in _NAME.findall(words)}):
        header = _find(f"ATen/ops/{name}.h", torch_folders)
        if not header:
            continue
        includes.append(f"ATen/ops/{name}.h")
        if "ITensorListRef" in _read(header):
            device_guard = True
    if device_guard:
        includes.append("ATen/DeviceGuard.h")
        defines.append("KERNELBENCH_LEAN_DEVICE_GUARD")
    if context:
        includes.append("ATen/Context.h")
        defines.append("KERNELBENCH_LEAN_CONTEXT")
    return Plan("lean", includes=includes, defines=defines)


def _find(name, folders):
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    return None


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(MAX_SOURCE_BYTES)
    except OSError:
        return ""


def _read_all(source, folders):
    """Returns the text of the file and of the user's own that it includes, and the names of all that they include."""
    texts, names, seen, left = [], set(), set(), [source]
    while left and len(seen) < MAX_SOURCES:
        path = os.path.realpath(left.pop())
        if path in seen:
            continue
        seen.add(path)
        texts.append(_read(path))
        for name in _INCLUDE.findall(texts[-1]):
            names.add(name.strip())
            inner = _find(name, [os.path.dirname(path), *folders])
            if inner:
                left.append(inner)
    return "\n".join(texts), names


def _values(arguments, option):
    """The values that follow an option."""
    return [value for argument, value in zip(arguments, arguments[1:]) if argument == option]


def _first_error(text):
    for line in text.splitlines():
        if re.search(r"\berror\b", line):
            return line.strip()[:300]
    return (text.strip().splitlines() or [""])[0][:300]


def compile_lean(command, arguments, source, output):
    """Runs the compiler, with the lean headers if the source is for them. Returns its exit code."""
    start = time.monotonic()
    joined = [argument[2:] for argument in arguments if argument.startswith("-I")]
    how = plan(source, [*joined, *_values(arguments, "-I")], _values(arguments, "-isystem"))
    if how.headers == "lean":
        folder = output + ".lean"
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "kernelbench_lean_more.h"), "w", encoding="utf-8") as file:
            file.write("#pragma once\n" + "".join(f"#include <{name}>\n" for name in how.includes))
        lean = [f"-I{LEAN}", f"-I{folder}", *(f"-D{name}" for name in how.defines)]
        ran = subprocess.run([command, *lean, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        words = ran.stdout.decode("utf-8", "replace")
        if ran.returncode == 0:
            sys.stdout.write(words)
        else:
            how = Plan("full", f"it did not compile with the lean ones: {_first_error(words)}")
    code = 0
    if how.headers != "lean":
        code = subprocess.run([command, *arguments], check=False).returncode
    with open(output + ".headers.json", "w", encoding="utf-8") as file:
        json.dump({"source": source, "headers": how.headers, "why": how.why,
                   "seconds": round(time.monotonic() - start, 3)}, file)
    return code if code >= 0 else 128 - code


def main(argv):
    command, arguments = argv[0], argv[1:]
    sources, outputs = _values(arguments, "-c"), _values(arguments, "-o")
    if len(sources) != 1 or len(outputs) != 1 or not os.path.isfile(sources[0]):
        os.execv(command, [command, *arguments])  # it links, or says its version
    return compile_lean(command, arguments, sources[0], outputs[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
