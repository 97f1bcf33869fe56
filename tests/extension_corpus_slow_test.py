"""Inline extensions as people and models write them (tests/data/extensions), built by prebuild.py.

Each says which headers it takes, builds, and is a Python module on a machine without a GPU. By itself two are
built; KERNELBENCH_ALL_EXTENSIONS=1 builds all 13, some ten minutes of a CPU.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from torch_worker_judge import PACKAGE, PYTHON  # noqa: E402

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "extensions")
TOOLKIT = os.environ.get("CUDA_HOME", "/usr/local/cuda")
HAS_NVCC = os.path.exists(os.path.join(TOOLKIT, "bin", "nvcc"))
ALL = os.environ.get("KERNELBENCH_ALL_EXTENSIONS") == "1"

# By candidate: the functions of each module (None: it is no Python module), and the headers of each source.
LEAN = {"main.cpp": "lean", "cuda.cu": "lean"}
EXPECTED = {
    "relu_types": ({"relu": ["relu_cuda"]}, [LEAN]),
    "cpp_only": ({"softplus_ext": ["softplus", "every_second", "constants"]}, [{"main.cpp": "lean"}]),
    "dispatch_half": ({"gelu_ext": ["gelu"]}, [LEAN]),
    "cublas": ({"linear_relu_ext": ["linear_relu"]}, [LEAN]),
    "several_functions": ({"norm": ["moments", "normalize"], "scan": ["scan"]}, [LEAN, LEAN]),
    "pybind_in_cuda": ({"tanh_shrink": ["forward"]}, [{"kernel.cu": "lean"}]),
    "two_files": ({"swish": ["swish"]}, [{"swish.cpp": "lean", "swish.cu": "own"}]),
    "library": ({"square_ops": None}, [LEAN]),
    "module_binding": ({"scale_ext": ["Scale", "scale"]}, [LEAN]),
    "wmma": ({"wmma_ext": ["matmul16"]}, [LEAN]),
    "own_headers": ({"own_ext": ["cube"]}, [{"main.cpp": "own", "cuda.cu": "own"}]),
    "functional": ({"functional_ext": ["twice"]}, [{"main.cpp": "full"}]),
    "beyond_lean": ({"beyond_ext": ["threads"]}, [{"main.cpp": "full"}]),
}
WITHOUT_NVCC = ("cpp_only", "functional", "beyond_lean")
ORDINARY = ("relu_types", "cpp_only")

LOAD = """
import importlib.machinery, importlib.util, sys, torch
loader = importlib.machinery.ExtensionFileLoader(sys.argv[1], sys.argv[2])
module = importlib.util.module_from_spec(importlib.util.spec_from_loader(sys.argv[1], loader))
loader.exec_module(module)
print(*dir(module))
"""


class Corpus(unittest.TestCase):
    def build(self, name):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        environment = {"MAX_JOBS": os.environ.get("MAX_JOBS", "2"), "CUDA_HOME": TOOLKIT, "TORCH_CUDA_ARCH_LIST": "9.0",
                       "PATH": "/usr/bin:/bin"}
        subprocess.run([PYTHON, "-I", "-B", os.path.join(PACKAGE, "prebuild.py"), "--source",
                        os.path.join(CORPUS, f"{name}.py"), "--out", folder.name], check=True, env=environment)
        with open(os.path.join(folder.name, "extensions.json"), encoding="utf-8") as file:
            return folder.name, json.load(file)

    def check(self, name):
        modules, sources = EXPECTED[name]
        folder, result = self.build(name)
        self.assertEqual(result["status"], "ok", result["text"])
        built = {extension["name"]: os.path.join(folder, extension["file"]) for extension in result["extensions"]}
        self.assertEqual(list(built), list(modules))
        expected = [(module, *source) for module, files in zip(modules, sources) for source in files.items()]
        found = [(source["extension"], source["source"], source["headers"]) for source in result["sources"]]
        self.assertCountEqual(found, expected, result["sources"])
        full = [source for _, source, headers in expected if headers == "full"]
        for source in full:
            self.assertIn(f"{source} was compiled with all of PyTorch's headers: it ", result["text"])
        if not full:
            self.assertEqual(result["text"], "")
        for module, functions in modules.items():
            if functions is None:
                continue
            loaded = subprocess.run([PYTHON, "-c", LOAD, module, built[module]], capture_output=True, text=True,
                                    check=False)
            self.assertEqual(loaded.returncode, 0, loaded.stderr)
            self.assertLessEqual(set(functions), set(loaded.stdout.split()))

    def test_all_are_expected(self):
        self.assertEqual(sorted(EXPECTED), sorted(n[:-len(".py")] for n in os.listdir(CORPUS) if n.endswith(".py")))


def _add(name):
    @unittest.skipUnless(ALL or name in ORDINARY, "KERNELBENCH_ALL_EXTENSIONS=1 builds it")
    @unittest.skipUnless(HAS_NVCC or name in WITHOUT_NVCC, "no CUDA compiler (nvcc) here")
    def test(self):
        self.check(name)
    setattr(Corpus, f"test_{name}", test)


for _name in EXPECTED:
    _add(_name)

if __name__ == "__main__":
    unittest.main()
