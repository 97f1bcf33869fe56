"""Inline C++ extensions: built by prebuild.py, then loaded by a torch worker from descriptors."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from torch_worker_judge import PACKAGE, PYTHON, TestWorker, WorkerFailed  # noqa: E402

PROBLEM = """
import torch, torch.nn as nn
n = 4096
SIZES = {"small": {"n": 8}}
class Model(nn.Module):
    def forward(self, x):
        return x * 3
def get_inputs():
    return [torch.arange(n, dtype=torch.float32)]
def get_init_inputs():
    return []
"""

# Two modules of one name, both asked for again (one in the constructor); one without bindings.
SEVERAL = """
import torch, torch.nn as nn
from torch.utils.cpp_extension import load_inline
HEAD = ["#include <torch/types.h>\\n#include <torch/csrc/utils/pybind.h>\\n"]
def scaled(k):
    return load_inline(name="scale", functions=["scale"], no_implicit_headers=True, with_pytorch_error_handling=False,
        cpp_sources=HEAD + ["torch::Tensor scale(torch::Tensor x) { return x * %d; }" % k], extra_cflags=["-O0"])
two = scaled(2)
four = scaled(4)
assert scaled(2) is two
load_inline(name="ops", cpp_sources=["#include <torch/types.h>\\n#include <torch/library.h>\\n"
    "at::Tensor half(const at::Tensor& x) { return x / 2; }\\n"
    "TORCH_LIBRARY(kb_test, m) { m.def(\\"half\\", half); }"], no_implicit_headers=True, is_python_module=False,
    extra_cflags=["-O0"])
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        assert scaled(4) is four
    def forward(self, x):
        return torch.ops.kb_test.half(two.scale(x)) + four.scale(x) / 2
"""

CUDA = """
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = '''
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
torch::Tensor relu(torch::Tensor x) {
  auto y = torch::empty_like(x);
  relu_kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
'''
ops = load_inline(name="relu_ops", cpp_sources="torch::Tensor relu(torch::Tensor x);", cuda_sources=source,
                  functions=["relu"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.relu(x)
"""

LAZY = """
import torch, torch.nn as nn
from torch.utils import cpp_extension
class ModelNew(nn.Module):
    def forward(self, x):
        if not hasattr(self, "module"):
            self.module = cpp_extension.load_inline("lazy", "torch::Tensor f(torch::Tensor x) { return x + x + x; }",
                                                    functions="f", extra_cflags=["-O0"])
        return self.module.f(x)
"""


class Prebuild(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def prebuild(self, source, problem=None):
        out = os.path.join(self.folder, "out")
        command = [PYTHON, "-I", os.path.join(PACKAGE, "prebuild.py"), "--source", self.write("candidate.py", source),
                   "--out", out]
        if problem:
            command += ["--problem", self.write("1_Test.py", problem)]
        # A bare environment, as in the sandbox.
        subprocess.run(command, check=True, env={"MAX_JOBS": "2", "CUDA_HOME": "/nonexistent"}, cwd=self.folder)
        with open(os.path.join(out, "extensions.json"), encoding="utf-8") as file:
            return json.load(file)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def turn(self, source, extensions):
        fds = []
        for extension in extensions:
            path = os.path.join(self.folder, "out", extension["file"])
            fds.append((extension["name"], os.open(path, os.O_RDONLY | os.O_CLOEXEC)))
            os.unlink(path)  # the worker has the descriptor, and no path
        with TestWorker() as worker:
            worker.attach(worker.load_problem(PROBLEM))
            worker.request("inputs", slots=[0], seeds=["1"])
            worker.load_candidate(source, PROBLEM, fds)
            return worker.turn([0])[0][0]

    def test_several_modules(self):
        result = self.prebuild(SEVERAL)
        self.assertEqual((result["status"], result["text"]), ("ok", ""), result["text"])
        self.assertEqual([e["name"] for e in result["extensions"]], ["scale", "scale_v1", "ops"])
        self.assertEqual(self.turn(SEVERAL, result["extensions"]), [3.0 * i for i in range(4096)])

    def test_built_at_the_first_call(self):
        result = self.prebuild(LAZY, PROBLEM)
        self.assertEqual([e["name"] for e in result["extensions"]], ["lazy"], result["text"])
        self.assertEqual(self.turn(LAZY, result["extensions"]), [3.0 * i for i in range(4096)])

    def test_compiler_errors_are_shown(self):
        source = SEVERAL.replace("return x * %d;", "retrun x * %d;")
        result = self.prebuild(source)
        self.assertEqual(result["status"], "compile_error")
        self.assertIn('building the extension "scale" failed', result["text"])
        self.assertRegex(result["text"], r"main\.cpp:\d+:\d+: error: .*retrun")
        self.assertEqual(result["extensions"], [])

    def test_without_nvcc(self):
        lines = ("from torch.utils.cpp_extension import load_inline\n",
                 "load_inline('k', '', cuda_sources='__global__ void f() {}')\n")
        source = "".join(lines)
        result = self.prebuild(source)
        self.assertEqual(result["status"], "compile_error")
        self.assertIn("no CUDA compiler (nvcc)", result["text"])
        handled = self.prebuild(f"{lines[0]}try:\n    {lines[1]}except Exception:\n    pass\n")
        self.assertEqual(handled["status"], "ok")
        self.assertIn("no CUDA compiler (nvcc)", handled["text"])

    def test_cuda_sources_are_built_ahead_without_a_gpu(self):
        """A KernelBench kernel as people have it, through the binary: 60 s and more with nvcc and torch's headers."""
        toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
        if not os.path.exists(os.path.join(toolkit, "bin", "nvcc")):
            self.skipTest("no CUDA compiler (nvcc) here")
        self.write("level_1_problem_19_sample_0_kernel.py", CUDA)
        run = subprocess.run([os.environ["KERNELBENCH_BINARY"], "compile", self.folder, "--arch", "sm_90", "--json",
                              "--cache", os.path.join(self.folder, "cache"), "--python", PYTHON],
                             capture_output=True, text=True, timeout=600)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        (sample,) = json.loads(run.stdout)["samples"]
        self.assertEqual((sample["status"], sample["cached"]), ("ok", False), sample["log"])

    def test_load_errors(self):
        result = self.prebuild("import nonexistent\n")
        self.assertEqual(result["status"], "load_error")
        self.assertIn("No module named 'nonexistent'", result["text"])
        self.assertNotIn("kernelbench_worker", result["text"])
        self.assertEqual(self.prebuild("import sys; sys.exit(0)\n")["status"], "load_error")

    def test_a_library_that_does_not_load_is_a_load_error(self):
        with TestWorker() as worker, open(self.write("x.so", "no library"), "rb") as file:
            worker.attach(worker.load_problem(PROBLEM))
            with self.assertRaises(WorkerFailed) as caught:
                worker.load_candidate(LAZY.replace("class", "cpp_extension.load_inline('x', '')\nclass"), PROBLEM,
                                      [("x", file.fileno())])
            self.assertEqual(caught.exception.kind, "load")
            self.assertIn("ImportError", caught.exception.text)


if __name__ == "__main__":
    unittest.main()
